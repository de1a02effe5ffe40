"""Comment lines about where exported settings come from."""

from collections.abc import Mapping, Sequence

from tuner.explain.explanation import Setting
from tuner.report.rows import describe_growth, describe_tail
from tuner.report.summary import Summary
from tuner.report.wording import (
    make_printable,
    say_age,
    say_estimate,
    say_gain,
    say_metric,
    say_rejection,
    say_speedup,
    say_trend,
)


def describe_origin(summary: Summary) -> tuple[str, ...]:
    """Return lines about which study found the settings, on what, and their gain."""
    fingerprint = summary.fingerprint
    versions = ", ".join(f"{name} {version}".strip() for name, version in fingerprint.servers.items())
    where = ", on the same machine (co-located)" if fingerprint.co_located else ""
    machine = (
        f"kernel {fingerprint.kernel}, {fingerprint.cores} cores, {fingerprint.memory_mib} MiB, "
        f"{fingerprint.cpu}"
    )
    lines = [
        f"{summary.study}: found by tuner {summary.version}, {summary.created}, preset {summary.preset}",
        *describe_candidate(summary),
        describe_gain(summary),
        *([summary.reason] if summary.reason else []),
        *describe_age(summary),
        *(f"WARNING: {each}" for each in (describe_tail(summary), describe_growth(summary)) if each),
        *describe_effects(summary),
        f"load: {summary.workload}",
        f"host: {fingerprint.host}, {machine}",
        f"versions: {versions}; load generator {fingerprint.generator}{where}",
        *describe_capacity(summary),
        *(f"{name}: {also}" for name in summary.shipped if (also := summary.space.also(name))),
    ]
    return tuple(make_printable(line) for line in lines)


def describe_capacity(summary: Summary) -> list[str]:
    """Return lines about what every server holds at once by default, and with the winner."""
    default = summary.space.describe_capacity(summary.default.config)
    winner = summary.space.describe_capacity(summary.winner.config) if summary.winner else {}
    lines = []
    for server, held in default.items():
        lines.append(f"capacity of {server} by default: {held}")
        if server in winner:
            lines.append(f"capacity of {server} with these settings: {winner[server]}")
    return lines + [f"LESS CAPACITY than the default: {lack}" for lack in summary.lacks]


def describe_candidate(summary: Summary) -> list[str]:
    """Return a line that marks what is no winner, with the reason."""
    found = summary.found
    if found is None:
        return []
    estimate, why = say_speedup(found.speedup), say_rejection(found.reason)
    return [f"CANDIDATE, NOT A WINNER: {estimate} by estimate, not shipped: {why}"]


def describe_gain(summary: Summary) -> str:
    """Return the gain of the settings, and whether that is proven."""
    if summary.gain is None:
        return f"gain: not confirmed{_describe_pick(summary)}"
    verdict = summary.gain.verdict
    claim = "" if verdict == "improved" else f" ({verdict if summary.gain.is_proven else verdict.upper()})"
    across = "".join(f", {each}" for each in (summary.across, summary.across_hosts) if each)
    of_what = f"{say_metric(summary.metric)} relative to the default{across}"
    return f"gain: {say_gain(summary.gain)}{claim}: {of_what}"


def describe_age(summary: Summary) -> list[str]:
    """Return lines about the seconds under load for which the gain holds."""
    if summary.gain is None or summary.gain.age is None:
        return []
    trend = say_trend(summary.gain.age)
    return [f"gain: {say_age(summary.gain.age)}", *([f"WARNING: {trend}"] if trend else [])]


def describe_effects(summary: Summary) -> list[str]:
    """Return a line for each changed setting: its values, and its effect with its 95 % interval.

    What follows from other settings has no effect of its own, and says so.
    """
    settings = explained_settings(summary)
    if not settings:
        return []
    show = summary.space.show
    said = [
        f"{each.parameter} {show(each.parameter, each.default)} → {show(each.parameter, each.value)}: "
        f"effect {say_estimate(each.effect)}"
        for each in settings
    ]
    return said + [
        f"{name} {show(name, old)} → {show(name, new)}: derived from the others"
        for name, (old, new) in summary.shipped.items()
        if name not in summary.changes
    ]


def explained_settings(summary: Summary) -> Sequence[Setting]:
    """Return what is known of each setting of the confirmed winner; nothing for any other choice."""
    if summary.explanation is None or summary.gain is None:
        return ()
    return summary.explanation.settings


def _describe_pick(summary: Summary) -> str:
    """Return what a picked choice gained in the search; nothing for what is no such choice."""
    if summary.winner is None or summary.cost is None:
        return ""
    config = dict(summary.winner.config)
    for number, choice in enumerate(summary.front, 1):
        if dict(choice.config) == config:
            return (
                f"; choice {number} of the search: goodput {say_speedup(choice.goodput)}, "
                f"{summary.cost} {say_speedup(choice.cost)}, relative to the default"
            )
    return ""


def describe_by_hand(summary: Summary, refused: Mapping[str, str]) -> list[str]:
    """Return lines about settings of the winner that an export does not hold, by name with the reason."""
    if not refused or summary.winner is None:
        return []
    winner, show = summary.winner.config, summary.space.show
    # A limit that follows from the others on this host need not have been one where the winner was measured.
    values = {name: f" = {show(name, winner[name])}" if name in winner else "" for name in refused}
    return [
        "CHANGE BY HAND, as the gain was measured with these settings, too:",
        *(f"  {name}{values[name]} ({why})" for name, why in refused.items()),
    ]


def write_head(summary: Summary, *more: str) -> str:
    """Return the head of a file in which # begins a comment: where the settings come from, and what else."""
    return comment(*describe_origin(summary), *more)


def comment(*lines: str) -> str:
    """Turn lines into a comment block of a file in which # begins a comment.

    None ends in a backslash: Apache would take the line after it for a part of the comment.
    """
    return "".join(f"# {make_printable(line)}".rstrip(" \\") + "\n" for line in lines)
