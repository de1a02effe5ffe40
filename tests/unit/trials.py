"""Short ways to write down trials."""

from collections.abc import Mapping

from tests.unit.simulation import TUNED, space_of
from tuner.ports import Config, Failures, Latency, Scalar
from tuner.records import Blame, Failure, Role, State, Trial, Verdict, Window

SPACE = space_of(*TUNED)
DEFAULT = SPACE.default()
SPOILED = (Verdict(check="steal", blame=Blame.ENVIRONMENT, reason="stolen."),)


def config_of(**values: Scalar) -> Config:
    """Complete some values to a configuration."""
    return SPACE.complete(values)


def window(
    rate: float = 1000.0,
    *,
    started_s: float = 0.0,
    failed: int = 0,
    spoiled: bool = False,
    p99_ms: float | None = None,
    histogram: Mapping[float, int] | None = None,
) -> Window:
    """Write down a window of one second."""
    latency = None
    if p99_ms is not None:
        latency = Latency(
            quantiles_ms={0.5: p99_ms / 2, 0.99: p99_ms}, samples=round(rate), histogram=histogram or {}
        )
    return Window(
        started_s=started_s, duration_s=1.0, correct=round(rate), failures=Failures(status=failed),
        latency=latency, verdicts=SPOILED if spoiled else (),
    )  # fmt: skip


def trial(number: int, *rates: float, config: Config = DEFAULT, **given: object) -> Trial:
    """Write down a trial, one second per window, ten seconds per trial."""
    begun_s = 10.0 * number
    windows = tuple(window(rate, started_s=begun_s + index) for index, rate in enumerate(rates))
    fields = {"role": Role.SEARCH, "state": State.COMPLETE, "started_s": begun_s, "windows": windows}
    return Trial(number=number, config=config, **fields | given)  # type: ignore[arg-type]


def failed(number: int, *, config: Config, kind: str = "crashed") -> Trial:
    """Write down a trial without a measurement."""
    failure = Failure(kind=kind, reason=f"it {kind}")
    return trial(number, config=config, state=State.FAILED, failure=failure)


def baseline(number: int, *rates: float, **given: object) -> Trial:
    """Write down a trial of the default."""
    return trial(number, *rates, role=Role.BASELINE, arm="default", **given)
