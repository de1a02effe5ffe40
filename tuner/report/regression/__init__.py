"""What became of a result since: what `tuner verify` and `tuner gate` have found."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.ports import Scalar
from tuner.report.regression.distance import Difference
from tuner.report.summary import Comparison
from tuner.report.wording import say_interval, say_percent, say_ratio
from tuner.space import Space
from tuner.statistics.arms.looks import Finding, half_of
from tuner.statistics.confirmation.paired_gain import Gain

NEW, BASELINE = "new", "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedSetting:
    """One setting of a winner, as it is wanted and as it was found."""

    name: str
    """Name of the parameter."""
    server: str
    """Server that it belongs to."""
    wanted: Scalar
    """Value of the winner."""
    found: Scalar | None
    """None where it cannot be read back."""
    drift: str = ""
    """Why it is not active as it should be; empty where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Fresh pairs that ask a question which was settled before them."""

    finding: Finding
    """What the pairs show."""
    comparison: Comparison | None
    """None where too few pairs came to be measured, because a side failed."""
    fault: str
    """What speaks against the second side, whatever the pairs say; may be empty."""
    most_pairs: int
    """Pairs after which it ends without a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether what a study found is still active, and still worth what it was."""

    study: str
    """Name of the study."""
    place: str
    """Where that was looked at."""
    space: Space
    """What the study tunes, around the host as it is now."""
    settings: tuple[AppliedSetting, ...]
    """Each setting of the winner, as it was found."""
    changed: tuple[Difference, ...]
    """In what the surroundings differ from those of the study."""
    failure: str = ""
    """Why the winner does not run at all; empty where it does."""
    remarks: tuple[str, ...] = ()
    """What else a reader has to know, a sentence each."""
    before: Gain
    """What the study measured."""
    measured: Measurement | None = None
    """Fresh pairs of default and winner; None where they were not asked for."""

    @property
    def drifted(self) -> tuple[AppliedSetting, ...]:
        """Return the settings that are not active as they should be."""
        return tuple(each for each in self.settings if each.drift)

    @property
    def verdict(self) -> str:
        """Return drifted, or what the pairs gave; without any, that it is active."""
        if self.failure or self.drifted:
            return "drifted"
        return self.measured.finding if self.measured is not None else "active"

    @property
    def headline(self) -> str:
        """Return what was found, in a sentence without its full stop."""
        if self.failure:
            return f"{self.study}: the winner does not run any more {self.place}"
        if self.drifted:
            return f"{self.study}: {len(self.drifted)} of {len(self.settings)} settings drifted {self.place}"
        in_force = f"{self.study}: {self._say_in_force()} {self.place}"
        if self.measured is None:
            return in_force
        told = {
            "holds": "and the gain holds",
            "gone": "but the gain is gone",
            "cannot tell": "but there are not enough pairs to tell whether the gain holds",
        }
        return f"{in_force}, {told[self.measured.finding]}"

    def _say_in_force(self) -> str:
        """Return that nothing drifted, and no more than was read back."""
        seen, count = sum(each.found is not None for each in self.settings), len(self.settings)
        if seen < count:
            return f"no setting drifted, {seen} of {count} could be read back,"
        return "the one setting is active" if count == 1 else f"all {count} settings are active"

    @property
    def reason(self) -> str:
        """Return why the gain is judged as it is; empty where it was not measured."""
        if self.measured is None:
            return ""
        if self.measured.fault:
            return self.measured.fault
        return self._explain_pairs(self.measured)

    def _explain_pairs(self, measured: Measurement) -> str:
        gain = measured.comparison.gain if measured.comparison is not None else self.before
        half = say_ratio(half_of(self.before))
        if measured.finding == "holds":
            is_less = gain.high < self.before.low
            return "The gain is smaller than the study measured." if is_less else ""
        if measured.finding == "gone":
            return f"The pairs rule out a gain of {half}, half of what it was."
        return (
            f"The pairs prove neither a gain nor that less than half of it ({half}) is left. Use more "
            "--pairs."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NonInferiority:
    """Whether something new is no slower than a baseline, by more than a margin."""

    study: str
    """Name of the study."""
    sides: Mapping[str, str]
    """`baseline` and `new` → what was named so."""
    workload: str
    """What the load generator sends, in words."""
    margin: float
    """Share that the new side may be slower."""
    measured: Measurement
    """The pairs of both sides, and what they show."""
    changes: Mapping[str, tuple[Scalar | None, Scalar | None]] = field(default_factory=dict)
    """Setting → both values, where the configurations differ; None where a side does not have it."""
    notes: tuple[str, ...] = ()
    """What else a reader has to know, a sentence each."""

    @property
    def finding(self) -> Finding:
        """Return what the pairs show."""
        return self.measured.finding

    @property
    def headline(self) -> str:
        """Return what was found, in a sentence without its full stop."""
        new, old = self.sides[NEW], self.sides[BASELINE]
        told = {
            "no slower": f"{new} is no slower than {old}",
            "slower": f"{new} is slower than {old}",
            "cannot tell": f"whether {new} is slower than {old} cannot be told",
        }
        if self.measured.fault:
            return f"{self.study}: {new} does not pass"
        return f"{self.study}: {told[self.finding]} (margin {say_percent(self.margin)})"

    @property
    def reason(self) -> str:
        """Return the sentence behind the headline."""
        if self.measured.fault or self.measured.comparison is None:
            return self.measured.fault
        bound, gain = say_ratio(1 - self.margin), self.measured.comparison.gain
        slower = [name for name, each in gain.by_load.items() if each.high < 1 - self.margin]
        if slower and self.finding == "slower":
            return f"The whole interval lies below {bound} under {', '.join(slower)}."
        told = {
            "no slower": f"The whole interval lies above {bound}.",
            "slower": f"The whole interval lies below {bound}.",
            "cannot tell": f"The interval {say_interval(gain.low, gain.high)} contains {bound} after all "
            f"{gain.pairs} planned pairs. Use more --pairs, or a wider --margin.",
        }
        return told[self.finding]
