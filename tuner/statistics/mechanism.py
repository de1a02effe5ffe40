"""Why the winner is faster: what the target's counters say of its trials and of the default's. Pure.

"Listen overflows per s 1,900 → 0" convinces an operator sooner than an importance does. A setting is an
observation that goes along with the gain, not a proof of its cause.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from tuner.records import Trial, Window

CHANCE = 0.05
"""Probability of any setting at all although nothing moved, shared out over the figures (Bonferroni)."""
LEAST_MOVE = math.log(1.05)
"""Moves below 5 % explain nothing, however sure they are."""
LEAST_TRIALS = 2
"""Without a second trial of either side, their spread is not known."""
MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """One figure that differs between default and winner by more than its spread."""

    name: str
    default: float
    winner: float
    ratio: float
    """Winner over default; infinite when the default has none of it."""
    sentence: str
    unit: str = ""
    """As it stands behind a value: a blank first where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One thing to compare."""

    name: str
    measure: Callable[[Window], float | None]
    """Of one window; None where its counters lack it."""
    floor: float
    """What is as good as nothing: keeps ratios of small numbers from leading the list."""
    unit: str = ""


def compare_mechanisms(default: Sequence[Trial], winner: Sequence[Trial]) -> tuple[Mechanism, ...]:
    """Find what moved between the trials of the default and those of the winner, most moved first.

    A trial is one observation: the mean of its valid windows (windows of one trial share its fate).
    """
    found = [(figure, _observe(figure, default), _observe(figure, winner)) for figure in FIGURES]
    moved = [
        (abs(_move(figure, before, after)), _describe(figure, before, after))
        for figure, before, after in found
        if _differs(figure, before, after)
    ]
    return tuple(mechanism for _, mechanism in sorted(moved, key=lambda pair: -pair[0]))


def attribute_mechanisms(
    trials: Sequence[Trial], has_setting: Mapping[str, Sequence[bool]]
) -> dict[str, tuple[Mechanism, ...]]:
    """Find what moves with each setting while the others stay, most moved first.

    Least squares of the log of each figure on all settings together: trials with one setting have others more
    often, too, and what those move is not to be put down to it. A setting that no trial has alone, apart from
    the same others, moves nothing that could be told.

    Args:
        trials: of any configuration, under one load.
        has_setting: by setting, whether each trial has it.
    """
    found: dict[str, list[Mechanism]] = {name: [] for name in has_setting}
    for figure in FIGURES:
        # Of a count that is often 0, the mean of logarithms is no share that anybody could count.
        for name, before, after in () if figure.measure is _failed else _regress(figure, trials, has_setting):
            found[name].append(_describe_move(figure, before, after))
    return {name: tuple(sorted(moved, key=_size)) for name, moved in found.items()}


def _regress(
    figure: Figure, trials: Sequence[Trial], has_setting: Mapping[str, Sequence[bool]]
) -> Iterator[tuple[str, float, float]]:
    """Yield the settings with which a figure moves for sure, and the figure without and with each."""
    seen = [(index, known[0]) for index, each in enumerate(trials) if (known := _observe(figure, [each]))]
    rows = [index for index, _ in seen]
    # Pages that only show mechanisms are drawn without these.
    import numpy as np
    from scipy.special import stdtrit

    design = np.column_stack([np.ones(len(rows)), *(np.asarray(has)[rows] for has in has_setting.values())])
    freedom = len(rows) - design.shape[1]
    if freedom < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return
    logs = np.log([value + figure.floor for _, value in seen])
    inverse = np.linalg.inv(design.T @ design)
    moves = inverse @ design.T @ logs
    spread = float(np.sum((logs - design @ moves) ** 2)) / freedom
    reach = float(stdtrit(freedom, 1 - CHANCE / len(FIGURES) / len(has_setting) / 2))
    errors = np.sqrt(spread * inverse.diagonal())
    with_all = float(moves.sum())
    for name, move, error in zip(has_setting, moves[1:], errors[1:], strict=True):
        if abs(move) > max(reach * error, LEAST_MOVE):
            before, after = (max(math.exp(log) - figure.floor, 0.0) for log in (with_all - move, with_all))
            if _write(before, figure) != _write(after, figure):
                yield name, before, after


def _size(mechanism: Mechanism) -> float:
    """Return minus how far a figure moved, for sorting."""
    return -abs(math.log(mechanism.ratio)) if 0 < mechanism.ratio < math.inf else -math.inf


def _observe(figure: Figure, trials: Sequence[Trial]) -> list[float]:
    """Measure one figure in each trial that counts and has it."""
    seen = []
    for trial in trials:
        if trial.counts:
            values = [figure.measure(window) for window in trial.valid_windows]
            known = [value for value in values if value is not None]
            if known:
                seen.append(fmean(known))
    return seen


def _differs(figure: Figure, before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether the means differ by more than their spread (t test) and by enough to matter."""
    if min(len(before), len(after)) < LEAST_TRIALS:
        return False
    from scipy.special import stdtrit  # as in `_regress`

    freedom = len(before) + len(after) - 2
    pooled = ((len(before) - 1) * variance(before) + (len(after) - 1) * variance(after)) / freedom
    reach = float(stdtrit(freedom, 1 - CHANCE / len(FIGURES) / 2))
    spread = reach * math.sqrt(pooled * (1 / len(before) + 1 / len(after)))
    distance = abs(fmean(after) - fmean(before))
    return distance > spread and abs(_move(figure, before, after)) > LEAST_MOVE


def _move(figure: Figure, before: Sequence[float], after: Sequence[float]) -> float:
    return math.log((fmean(after) + figure.floor) / (fmean(before) + figure.floor))


def _describe(figure: Figure, before: Sequence[float], after: Sequence[float]) -> Mechanism:
    return _describe_move(figure, fmean(before), fmean(after))


def _describe_move(figure: Figure, first: float, then: float) -> Mechanism:
    return Mechanism(
        name=figure.name,
        default=first,
        winner=then,
        ratio=then / first if first else math.inf,
        sentence=f"{figure.name} {_write(first, figure)} → {_write(then, figure)}{figure.unit}",
        unit=figure.unit,
    )


def _write(value: float, figure: Figure) -> str:
    """Write a figure with two digits, or whole from 100 on."""
    if value < figure.floor / 2:
        return "0"
    if value >= 100:  # noqa: PLR2004 - digits, not a limit
        return f"{value:,.0f}"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{digits}f}"


def _per_request(counter: str, *, scale: float = 1.0) -> Callable[[Window], float | None]:
    """Count per correct response."""

    def measure(window: Window) -> float | None:
        count = window.counters.get(counter)
        return None if count is None or not window.correct else scale * count / window.correct

    return measure


def _per_second(counter: str, *, scale: float = 1.0) -> Callable[[Window], float | None]:
    def measure(window: Window) -> float | None:
        count, elapsed_s = window.counters.get(counter), window.counters.get("elapsed_s")
        return None if count is None or not elapsed_s else scale * count / elapsed_s

    return measure


def _level(counter: str, *, scale: float = 1.0) -> Callable[[Window], float | None]:
    def measure(window: Window) -> float | None:
        value = window.counters.get(counter)
        return None if value is None else scale * value

    return measure


def _failed(window: Window) -> float | None:
    return 100 * window.failure_rate if window.correct or window.failures.total else None


FIGURES = (
    Figure(name="failed requests", measure=_failed, floor=0.01, unit=" %"),
    Figure(name="context switches per request", measure=_per_request("context_switches"), floor=0.01),
    Figure(
        name="server preemptions per request",
        measure=_per_request("server_switches_involuntary"),
        floor=0.01,
    ),
    Figure(name="server CPU µs per request", measure=_per_request("server_cpu_s", scale=1e6), floor=0.5),
    Figure(name="busy CPUs", measure=_per_second("busy_s"), floor=0.01),
    Figure(name="softirq share of CPU", measure=_level("softirq_share", scale=100), floor=0.5, unit=" %"),
    Figure(
        name="time with tasks waiting for a CPU",
        measure=_per_second("pressure_cpu_some_s", scale=100),
        floor=1.0,
        unit=" %",
    ),
    Figure(
        name="time with tasks waiting for I/O",
        measure=_per_second("pressure_io_some_s", scale=100),
        floor=1.0,
        unit=" %",
    ),
    Figure(name="listen overflows per s", measure=_per_second("listen_overflows"), floor=0.1),
    Figure(name="request queue drops per s", measure=_per_second("request_queue_drops"), floor=0.1),
    Figure(name="SYN cookies per s", measure=_per_second("request_queue_cookies"), floor=0.1),
    Figure(name="SYN retransmits per s", measure=_per_second("syn_retransmits"), floor=0.1),
    Figure(name="retransmitted segments per s", measure=_per_second("retransmitted_segments"), floor=0.1),
    Figure(name="resets sent per s", measure=_per_second("resets_sent"), floor=0.1),
    Figure(name="new connections per request", measure=_per_request("passive_opens"), floor=0.001),
    Figure(name="segments sent per request", measure=_per_request("segments_sent"), floor=0.01),
    Figure(name="sockets in TIME_WAIT", measure=_level("time_wait"), floor=10.0),
    Figure(name="packet rounds cut short per s", measure=_per_second("packets_squeezed"), floor=0.1),
    Figure(name="packets dropped per s", measure=_per_second("packets_dropped"), floor=0.1),
    Figure(name="server page faults per request", measure=_per_request("server_faults_minor"), floor=0.01),
    Figure(name="processes started per s", measure=_per_second("forks"), floor=1.0),
    Figure(name="server memory", measure=_level("server_rss_bytes", scale=1 / MIB), floor=0.1, unit=" MiB"),
)
"""What may explain a gain; counters.py says where each comes from."""
