"""Where exported settings come from, as comment lines."""

from typing import TYPE_CHECKING

from tuner.report.wording import make_printable, say_gain, say_metric, say_speedup

if TYPE_CHECKING:
    from tuner.report.summary import Summary


def describe_origin(summary: "Summary") -> tuple[str, ...]:
    """Say in a few lines which study found the settings, on what, and what they are worth."""
    fingerprint = summary.fingerprint
    versions = ", ".join(f"{name} {version}" for name, version in fingerprint.servers.items())
    where = ", on the same machine (co-located)" if fingerprint.co_located else ""
    machine = (
        f"kernel {fingerprint.kernel}, {fingerprint.cores} cores, {fingerprint.memory_mib} MiB, "
        f"{fingerprint.cpu}"
    )
    lines = [
        f"{summary.study}: found by tuner {summary.version}, {summary.created}, preset {summary.preset}",
        describe_gain(summary),
        f"load: {summary.workload}",
        f"host: {fingerprint.host}, {machine}",
        f"versions: {versions}; load generator {fingerprint.generator}{where}",
        *describe_capacity(summary),
        *(f"{name}: {also}" for name in summary.shipped if (also := summary.space.also(name))),
    ]
    return tuple(make_printable(line) for line in lines)


def describe_capacity(summary: "Summary") -> list[str]:
    """Say what every server holds at once by default, and with the winner."""
    default = summary.space.describe_capacity(summary.default.config)
    winner = summary.space.describe_capacity(summary.winner.config) if summary.winner else {}
    lines = []
    for server, held in default.items():
        lines.append(f"capacity of {server} by default: {held}")
        if server in winner:
            lines.append(f"capacity of {server} with these settings: {winner[server]}")
    return lines + [f"LESS CAPACITY than the default: {lack}" for lack in summary.lacks]


def describe_gain(summary: "Summary") -> str:
    """Say what the settings are worth, and whether that is proven."""
    if summary.gain is None:
        return f"gain: not confirmed{_say_pick(summary)}"
    claim = "" if summary.gain.verdict == "improved" else f" ({summary.gain.verdict.upper()})"
    return f"gain: {say_gain(summary.gain)}{claim}: {say_metric(summary.metric)} relative to the default"


def _say_pick(summary: "Summary") -> str:
    """Say what a picked choice was worth in the search; nothing for what is no such choice."""
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


def comment(*lines: str) -> str:
    """Turn lines into a comment block of a file in which # begins a comment.

    None ends in a backslash: Apache would take the line after it for a part of the comment.
    """
    return "".join(f"# {make_printable(line)}".rstrip(" \\") + "\n" for line in lines)
