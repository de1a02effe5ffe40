"""Numbers and names as text, the same in terminal, report and exports."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tuner.ports import Scalar
from tuner.records import Metric
from tuner.shell_words import write_command
from tuner.space.values import format_number
from tuner.study.presets import PRESETS

if TYPE_CHECKING:
    from tuner.records.latency import Quantile
    from tuner.statistics.age import Age, Trend
    from tuner.statistics.baseline_level import Speedup
    from tuner.statistics.confirmation.paired_gain import Gain
    from tuner.statistics.confirmation.robustness import Checked, Robustness

NOTHING = "–"
NOTHING_BETTER = "nothing beat the default"
"""How a study ends that found nothing."""
LATER = "standard"
"""Preset whose windows begin later than those of a quick study."""
MOST_RATIO = 1000
EXACT = "\t\r\f"
"""Signs in files of programs that do not steer, and that a page keeps by their numbers."""
NOTICED_TAIL = 1.1
"""A p99 that rises by less is nobody's concern."""
REJECTED = {"the winner ": "the candidate ", "winner: ": "the candidate failed: "}
"""How a stored reason names the side that was to win → how it is called when it did not."""
MINUTE_S = 60
HOUR_S = 3600

Ladder = Mapping[str, tuple[float, float]]
"""Units, smallest first: from which number on the next one is used, and how many of it make one of those."""
BYTES: Ladder = {
    "bytes": (1024, 1024), "KiB": (1024, 1024), "MiB": (1024, 1024), "GiB": (1024, 1024),
    "TiB": (math.inf, 1),
}  # fmt: skip
TIMES: Ladder = {
    "ns": (1000, 1000), "µs": (1000, 1000), "ms": (1000, 1000), "s": (3600, 3600), "h": (math.inf, 1),
}  # fmt: skip
COUNTS: Ladder = {"": (10_000, 1000), "k": (1000, 1000), "M": (1000, 1000), "G": (math.inf, 1)}


def say_ratio(ratio: float) -> str:
    """Write a speedup: 1.31×; beyond a thousand, against next to nothing, digits say nothing."""
    if ratio > MOST_RATIO:
        return f">{MOST_RATIO:,}×"
    return f"{ratio:.2f}×" if math.isfinite(ratio) else NOTHING


def say_interval(low: float, high: float) -> str:
    """Write an interval of speedups: [1.27, 1.35]; an end that is not known is left open."""
    ends = ("…" if not math.isfinite(end) or end > MOST_RATIO else f"{end:.2f}" for end in (low, high))
    return f"[{', '.join(ends)}]"


class AnyEstimate(Protocol):
    """A ratio with its interval: an estimate, a gain, an effect."""

    @property
    def ratio(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def say_estimate(estimate: AnyEstimate) -> str:
    """Write a ratio with its interval: 1.12× [1.05, 1.19]."""
    return f"{say_ratio(estimate.ratio)} {say_interval(estimate.low, estimate.high)}"


def say_speedup(speedup: "Speedup | None") -> str:
    """Write the speedup of a trial: 1.31× [1.27, 1.35]."""
    if speedup is None:
        return NOTHING
    return f"{say_ratio(speedup.ratio)} {say_interval(*speedup.interval())}"


def say_gain(gain: "Gain") -> str:
    """Write a confirmed gain: 1.31× [1.27, 1.35], 6 pairs."""
    pairs = f"{gain.pairs} pair" if gain.pairs == 1 else f"{gain.pairs} pairs"
    return f"{say_estimate(gain)}, {pairs}"


def say_found(speedup: "Speedup", reason: str) -> str:
    """Write what was found and is not shipped: found 1.41× [1.29, 1.54], not shipped: REASON."""
    return make_printable(f"found {say_speedup(speedup)}, an estimate, not shipped: {say_rejection(reason)}")


def say_rejection(reason: str) -> str:
    """Write why a candidate is not shipped, from the verdict that a storage has of it."""
    why = reason.removeprefix("not confirmed: ")
    for stored, said in REJECTED.items():
        if why.startswith(stored):
            return said + why.removeprefix(stored)
    return why


def say_unproven(gain: "Gain | None") -> str:
    """Write what the pairs did not prove, and what that means; empty when they did."""
    if gain is not None and gain.is_proven:
        return ""
    return f"{gain.verdict if gain is not None else 'not confirmed'}: for tests, not for service"


def say_comparison(gain: "Gain", first: str, second: str) -> str:
    """Write what pairs gave: tuned.yaml is 1.31× [1.27, 1.35], 6 pairs of default: improved."""
    what = "" if gain.metric is Metric.GOODPUT else f" in {say_metric(gain.metric)}"
    return make_printable(f"{second} is {say_gain(gain)} of {first}{what}: {gain.verdict}")


def say_lacks(name: str, lacks: Sequence[str]) -> str:
    """Write that a configuration which was measured has less capacity than the default."""
    return make_printable(
        f"{name} has less capacity than the default: {'; '.join(lacks)}. "
        "Its figures do not show how it serves slow clients."
    )


def say_age(age: "Age | None") -> str:
    """Write for which seconds under load a gain holds; empty where they are not known."""
    if age is None:
        return ""
    return f"measured {_span(age)} s into the load"


def say_trend(age: "Age | None", sides: Sequence[str] = ("default", "winner")) -> str:
    """Warn that a gain moves with the seconds under load; empty where that may be noise or is below 1 %."""
    if age is None or age.ratio is None or not age.ratio.is_certain:
        return ""
    (default, winner), (first, last) = sides, _seconds(age)
    warning = (
        f"the ratio of {winner} to {default} {say_change(age.ratio)} from {first} to {last} s into the load"
    )
    if is_young(age):
        again = write_command("tuner", "compare", "STUDY", default, winner, "--preset", LATER)
        return f"{warning}: confirm with `{again}`"
    return f"{warning}: how it changes later is not known"


def say_tail(gain: "Gain | None", first: str = "the default", second: str = "the winner") -> str:
    """Warn that the slowest responses of the second side take longer; empty where that may be noise."""
    p99 = gain and gain.p99
    if not gain or not p99 or p99.low <= 1 or p99.ratio < NOTICED_TAIL:
        return ""
    when = "" if gain.age is None else f" {_span(gain.age)} s into the load"
    return (
        f"the slowest 1 % of responses take longer with {second}{when}: their p99 is {say_estimate(p99)} "
        f"that of {first}"
    )


def is_young(age: "Age | None") -> bool:
    """Return whether longer studies look at older servers."""
    return age is not None and age.from_s < PRESETS[LATER].warmup_s


def say_change(trend: "Trend") -> str:
    """Write a trend: shrinks by 3.1 % [1.2, 5.0]."""
    sign = -1 if trend.change < 0 else 1
    low, high = sorted((100 * sign * trend.low, 100 * sign * trend.high))
    verb = "shrinks" if trend.change < 0 else "grows"
    return f"{verb} by {100 * sign * trend.change:.1f} % [{low:.1f}, {high:.1f}]".replace("-", "−")


def _span(age: "Age") -> str:
    first, last = _seconds(age)
    return f"{first}–{last}"


def _seconds(age: "Age") -> tuple[int, int]:
    """Return the whole seconds between which a gain was measured: from 1.04 s to 3.1 s, these are 1 and 3."""
    first = round(age.from_s)
    return first, max(first + 1, round(age.to_s))


def say_rate(rate_rps: float) -> str:
    """Write requests per second: 128,431."""
    if not math.isfinite(rate_rps):
        return NOTHING
    return f"{rate_rps:,.0f}" if rate_rps >= 100 else f"{rate_rps:.3g}"  # noqa: PLR2004 - digits, not a limit


def say_milliseconds(value_ms: float | None) -> str:
    """Write a response time with three digits: 4.37 ms."""
    if value_ms is None or not math.isfinite(value_ms):
        return NOTHING
    return f"{value_ms:,.0f} ms" if value_ms >= 100 else f"{value_ms:#.3g} ms"  # noqa: PLR2004


def say_quantile(found: "Quantile | None") -> str:
    """Write a quantile of response times with its interval: 4.37 ms [4.12 ms, 4.70 ms]."""
    if found is None:
        return "too few requests to tell"
    low, high = say_milliseconds(found.low_ms), say_milliseconds(found.high_ms)
    return f"{say_milliseconds(found.value_ms)} [{low}, {high}]"


def say_metric(metric: Metric) -> str:
    """Write of what a gain is the ratio."""
    if metric is Metric.LATENCY_P99:
        return "speed of the slowest 1 % (1 / p99)"
    if metric is Metric.MEMORY:
        return "low memory use of the server (1 / MiB)"
    if metric in {Metric.PER_CPU, Metric.CPU}:
        return "requests per CPU second of the server"
    return "correct responses per second"


def say_robustness(found: "Robustness", name: str = "winner") -> str:
    """Write in one line how a candidate fares under loads that it was not tuned on; empty without a check.

    What it does not bear comes first, then what got worse, then where it holds, then slow clients with both
    figures, and last what could not be tried.
    """
    if found.failure is not None:
        return make_printable(f"does not run under the check loads: {found.failure}")
    bad = [say_checked(each, name) for each in found.checked if each.is_rejected]
    worse = [say_checked(each, name) for each in found.checked if each.is_warning]
    fine = [each for each in found.checked if each.finding == "holds"]
    slow = [say_checked(each, name) for each in fine if each.check_load.slow_clients]
    held = _say_held([each for each in fine if not each.check_load.slow_clients])
    left_out = [make_printable(f"not tried: {what} ({why})") for what, why in found.left_out.items()]
    return "; ".join([*bad, *worse, *held, *slow, *left_out])


def _say_held(fine: "Sequence[Checked]") -> list[str]:
    """Write the check loads that need no figures: holds from 25 to 400 connections and with keep-alive."""
    counts = sorted(each.check_load.connections for each in fine if each.check_load.changes == "connections")
    others = [f"with {each.check_load.name}" for each in fine if each.check_load.changes != "connections"]
    if len(counts) > 1:
        others.insert(0, f"from {counts[0]:,} to {counts[-1]:,} connections")
    elif counts:
        others.insert(0, f"with {counts[0]:,} connections")
    return [f"holds {' and '.join(others)}"] if others else []


def say_checked(each: "Checked", name: str) -> str:
    """Write one check load with the figures of both sides."""
    where = f"with {each.check_load.name}"
    default, candidate = say_rate(each.default.goodput_rps), say_rate(each.candidate.goodput_rps)
    figures = f"default {default}, {name} {candidate} requests/s"
    settling = _say_settling(each, name)
    if each.finding == "holds":
        return f"{where}: {figures}{settling}"
    if each.finding in {"fails", "fails more"}:
        before, after = (say_percent(side.failure_rate, 2) for side in (each.default, each.candidate))
        return f"{each.finding} {where}: default {before}, {name} {after} of requests; {figures}"
    return f"{each.finding} {where}: {figures} ({say_estimate(each)}){settling}"


def _say_settling(each: "Checked", name: str) -> str:
    """Write how long a side that is slower to make room for slow clients serves less; empty otherwise."""
    default_s, candidate_s = (round(side.settling_s) for side in (each.default, each.candidate))
    if candidate_s <= default_s:
        return ""
    default = f", the default for {say_duration(default_s)}" if default_s else ""
    return (
        f", but when slow clients come, {name} serves less than half of that for "
        f"{say_duration(candidate_s)}{default}"
    )


def say_failures(failures: int, requests: int) -> str:
    """Write failed requests with their share of all requests: 12 (0.003 %)."""
    if not failures or not requests:
        return f"{failures:,}"
    share = failures / requests
    return f"{failures:,} ({f'{100 * share:.2g} %' if share < 0.1 else say_percent(share, 0)})"  # noqa: PLR2004 - digits


def say_duration(seconds: float) -> str:
    """Write a length of time: 42 s, 4 min 05 s, 1 h 15 min."""
    whole = max(0, round(seconds))
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S:02d} s"
    return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S:02d} min"


def say_percent(share: float, digits: int = 1) -> str:
    """Write a share as a percentage: 2.4 %, 95 %."""
    if not math.isfinite(share):
        return NOTHING
    text = f"{100 * share:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + " %"


def say_number(count: int, what: str) -> str:
    """Write how many there are of something: 1 setting, 2 settings."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def say_count(value: float, unit: str = "") -> str:
    """Write a counter's value with three digits: 1,234 or 0.0123 or 41.5 %."""
    shown = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - digits, not a limit
    return f"{shown}{unit}"


def say_roughly(value: float, unit: str = "") -> str:
    """Write a number with about three digits and the unit that suits it: 2.2 MiB, 133k, 75 s; for axes.

    What is counted (processes, requests) is left to the name of the setting, as it is everywhere else.
    """
    ladder = next((ladder for ladder in (BYTES, TIMES) if unit in ladder), COUNTS)
    rungs = list(ladder)
    rung = rungs.index(unit) if unit in ladder else 0
    while abs(value) >= ladder[rungs[rung]][0]:
        value /= ladder[rungs[rung]][1]
        rung += 1
    shown = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - digits, not a limit
    if ladder is COUNTS:
        return f"{shown}{rungs[rung]}{f' {unit}' if unit in {'%', 'pages'} else ''}"
    return f"{shown} {rungs[rung]}"


def say_value(value: Scalar) -> str:
    """Write a value where no space says how: on, off, 1024, 0.25."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return format_number(value) if isinstance(value, float) else str(value)


def capitalize(text: str) -> str:
    """Write the first letter large and leave the others as they are; an address stays as it is."""
    is_address = "://" in text.split(" ", 1)[0]
    return text if is_address else text[:1].upper() + text[1:]


def make_printable(text: str) -> str:
    """Replace what would steer a terminal: every control and format character, line ends included."""
    if text.isprintable():
        return text
    steering = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return "".join(" " if unicodedata.category(sign) in steering else sign for sign in text)


def can_be_copied(text: str) -> bool:
    """Return whether a page may hold a text as it is, so that what is copied out of it is the same."""
    shown = "".join(sign for sign in text if sign not in EXACT + "\n")
    return make_printable(shown) == shown


def make_lines_printable(text: str) -> str:
    """Make every line of a text printable; tabs become blanks."""
    return "\n".join(make_printable(line.expandtabs(4)) for line in text.split("\n"))


LIMITED = "goodput was limited by the load generator"
LOWER_BOUND = (
    "The load generator used up its CPUs with the winner: its goodput, and the gain, are lower bounds."
)
