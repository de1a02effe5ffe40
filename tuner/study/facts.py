"""Facts about a whole study that its storage keeps beside the trials.

Keys and JSON forms are a contract: a later tuner resumes the studies of an earlier one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter

from tuner.ports import Config, Scalar
from tuner.records import CheckLoad, Fingerprint, Metric
from tuner.records.as_json import require_plain
from tuner.records.blend import Blend, Hosts
from tuner.space import facts_from_json

T = TypeVar("T")

LogGain = Annotated[float, Field(ge=-100, le=100)]
"""A gain in log points; beyond that no ratio is a number."""


def _require_facts(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts of a space as they are. Raises ValueError, TypeError or KeyError for others."""
    facts_from_json(value)
    return value


StoredFacts = Annotated[Mapping[str, Any], AfterValidator(_require_facts)]
VERSION = 2
"""Of all the forms below, trials included; storages that name none are of the first. The second has trials
under check loads."""


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """One fact: its key, and the form that it has among JSON values."""

    key: str
    form: TypeAdapter[T]

    def from_json(self, value: Any) -> T:  # noqa: ANN401 - whatever was stored
        """Read a fact. Raises ValueError for what no tuner writes."""
        return self.form.validate_python(require_plain(value))

    def to_json(self, value: T) -> Any:  # noqa: ANN401 - JSON values
        """Return a fact as JSON values."""
        return self.form.dump_python(value, mode="json", by_alias=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A finalist that is not shipped."""

    config: Config
    reason: str
    """What speaks against it, as the screen shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The confirmation as it was planned before its first pair, which is how it is judged."""

    config: Config
    """The winner."""
    pairs: int
    windows: int
    """Of each trial."""
    extend_to: int
    """Pairs after the extension; `pairs` when there is none."""
    looks: int
    """How often the pairs may be judged: twice with an extension."""
    first_block: int = 0
    """Number of its first pair; those before it are of a finalist that was rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedRateComparison:
    """The comparison of response times as it was planned before its first pair."""

    config: Config
    """The winner."""
    rate_rps: float
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCheck:
    """A candidate and the default under loads that nothing was tuned on, as planned before the first trial.

    It is judged by what is said here and by its trials, and by nothing that changes later.
    """

    config: Config
    """The candidate."""
    check_loads: Annotated[tuple[CheckLoad, ...], Field(alias="situations")]
    left_out: Mapping[str, str]
    """Check loads that cannot be made: name → reason."""
    pairs: int
    first_block: int
    """Number of its first pair among those of all checks."""
    window_s: float
    pair_sd: float
    """SD of the log ratio of two windows of two trials, as known from the study's own load."""
    failure_limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """One parameter, the values at which it is measured, and what stays around it."""

    parameter: str
    at: str
    """What the other settings are those of: default or winner."""
    values: tuple[Scalar, ...]
    """In the order in which they are shown."""
    configs: tuple[Config, ...]
    """Of each value: what follows from it follows."""
    control: int
    """Index of the value that the parameter has there anyway, to which ratios are relative."""
    is_log: bool
    """Whether the parameter is searched on a logarithmic scale."""
    special: tuple[int, ...] = ()
    """Indices of the values that lie on no scale: choices, and special values of a number."""
    lacks: Mapping[int, str] = field(default_factory=dict)
    """Index of each value with which less is held than by default → what."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the name of each value's arm."""
        return tuple(f"{self.parameter}={json.dumps(value)}" for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One configuration of one study in a contest."""

    study: str
    name: str
    """default, tuned, or the name of a preset or of a file of values."""
    config: Config
    notes: tuple[str, ...] = ()
    """What has to be known of it: the capacity that it lacks, what was fitted to this host."""

    @property
    def arm(self) -> str:
        """Return the name under which its trials are kept."""
        return f"{self.study}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestPlan:
    """Configurations of one or several studies that are measured against each other."""

    entrants: tuple[Entrant, ...]
    """Those of one study stand next to each other, what its bounds are relative to first."""
    is_stepwise: bool = False
    """Whether each entrant is a step further than the one before it."""
    notes: tuple[str, ...] = ()
    """What has to be known of the whole."""

    @property
    def studies(self) -> tuple[str, ...]:
        """Return the names of the studies, in order."""
        return tuple(dict.fromkeys(each.study for each in self.entrants))


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePlan:
    """Some configurations, and the numbers of connections under which each is measured."""

    names: tuple[str, ...]
    """As they were asked for: default, winner, a preset or a file; ratios are relative to the first."""
    configs: tuple[Config, ...]
    connections: tuple[int, ...]
    """Rising."""
    failure_limit: float
    """Share of failed requests from which on a configuration is held to fail."""

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """Return what is measured: index of the configuration, number of connections."""
        return tuple((index, count) for index in range(len(self.names)) for count in self.connections)

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the name of each cell's arm."""
        return tuple(f"{self.names[index]} at {count}" for index, count in self.cells)


FORMAT: Fact[int] = Fact("format", TypeAdapter(int))
DEFINITION: Fact[Mapping[str, str]] = Fact("definition", TypeAdapter(Mapping[str, str]))
"""The study file and the search space: name → text."""
FINGERPRINT: Fact[Fingerprint] = Fact("fingerprint", TypeAdapter(Fingerprint))
OTHER_HOSTS: Fact[Mapping[str, Fingerprint]] = Fact("other_hosts", TypeAdapter(Mapping[str, Fingerprint]))
"""Fingerprints of the hosts that joined a study of several, by name; the first one's is `FINGERPRINT`."""


HOSTS: Fact[Hosts] = Fact("hosts", TypeAdapter(Hosts))
"""The hosts for all of which the winner is to hold; absent from studies with one target."""
PRESET: Fact[str] = Fact("preset", TypeAdapter(str))
"""Return of the preset that the study began with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedLoad:
    """Who runs where since the load generator was given more room."""

    server_cpus: tuple[int, ...]
    generator_cpus: tuple[int, ...]
    threads: int
    """Of the load generator."""
    since: int
    """Number of the first trial with it; those before are of another load."""


MOVED_LOAD: Fact[MovedLoad] = Fact("moved_load", TypeAdapter(MovedLoad))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Windows as a slow application needs them."""

    window_s: float
    response_s: float
    """Of the default under the study's load; 0 while it is not known."""
    since: int
    """Number of the first trial with it; those before had shorter windows."""


PACE: Fact[Pace] = Fact("pace", TypeAdapter(Pace))
BLEND: Fact[Blend] = Fact("blend", TypeAdapter(Blend))
"""What counts of several loads; absent from studies of one load."""
METRIC: Fact[Metric] = Fact("metric", TypeAdapter(Metric))
"""What is maximized, as settled after the calibration; studies of the first form maximize goodput."""
SPACE_FACTS: Fact[Mapping[str, Any]] = Fact("space_facts", TypeAdapter(StoredFacts))
"""What the space was loaded with, as `tuner.space.facts_to_json` writes it."""
EXPECTED_GAINS: Fact[tuple[float | None, ...]] = Fact("expected", TypeAdapter(tuple[LogGain | None, ...]))
"""Expected gain of every suggestion, in log points; None where no model was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """What the search of many workers tries next, as one of them has chosen it.

    Whoever is free takes the first that nobody has begun, so nothing has to be crossed out.
    """

    configs: tuple[Config, ...]
    since: int
    """Number of the first trial that may be of it."""


PLANNED: Fact[SearchPlan] = Fact("planned", TypeAdapter(SearchPlan))
BEGUN_AGAIN: Fact[Mapping[str, int]] = Fact("begun_again", TypeAdapter(Mapping[str, int]))
"""Of configurations that were lost with a host or a worker: number of the first trial that was → from which
trial on it was begun again."""
IS_SEARCHED: Fact[bool] = Fact("searched", TypeAdapter(bool))
FINALIST: Fact[tuple[Config, ...]] = Fact("finalist", TypeAdapter(tuple[Config, ...]))
"""The configuration that leads after the race, or none."""
REJECTED: Fact[tuple[Rejection, ...]] = Fact("refused", TypeAdapter(tuple[Rejection, ...]))
CONFIRMATION: Fact[Confirmation] = Fact("confirm", TypeAdapter(Confirmation))
ROBUSTNESS: Fact[tuple[PlannedCheck, ...]] = Fact("other_loads", TypeAdapter(tuple[PlannedCheck, ...]))
"""One for each candidate that came so far, in order."""
FIXED_RATE: Fact[FixedRateComparison] = Fact("latency", TypeAdapter(FixedRateComparison))


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedDifferences:
    """What the winner makes of the files of every server, with the winner that it is of."""

    winner: Config
    text: str
    """As `differences_to_json` of tuner.export writes them."""
    seal: str
    """Of who wrote it (`tuner.study.cache`): commands and files that somebody else names are not used."""


TOO_NOISY = "not proven: too noisy"
"""Begins the verdict of a study that a noisy host ended early; run again, it resumes."""
VERDICT: Fact[str] = Fact("finished", TypeAdapter(str))
"""Why the study stopped; there when it is finished."""
DIFFERENCES: Fact[SealedDifferences] = Fact("sealed_differences", TypeAdapter(SealedDifferences))
"""An earlier tuner kept them unsealed, as `differences`; those are left alone."""
SWEEP: Fact[SweepPlan] = Fact("sweep", TypeAdapter(SweepPlan))
"""Of the storage of a sweep, which is none of a study."""
CONTEST: Fact[ContestPlan] = Fact("contest", TypeAdapter(ContestPlan))
"""Of the storage of a contest, which is none of a study."""
CURVE: Fact[CurvePlan] = Fact("curve", TypeAdapter(CurvePlan))
"""Likewise, of a load curve."""

PLANS: tuple[Fact[Any], ...] = (
    METRIC, BLEND, MOVED_LOAD, PACE, IS_SEARCHED, FINALIST, REJECTED, ROBUSTNESS, CONFIRMATION, FIXED_RATE,
    VERDICT,
)  # fmt: skip
"""What the stages of a campaign plan and settle; where another worker has changed any of it, a campaign goes
on from there."""
