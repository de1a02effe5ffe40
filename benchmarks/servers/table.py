"""Writes results as a Markdown table."""

from collections.abc import Sequence

from benchmarks.servers.run import Result

COLUMNS = ("server", "verdict", "gain [95 %]", "pairs", "failures: default → winner", "lines", "s", "why")
NOT_MEASURED = "not measured"
NONE = "–"


def write_table(results: Sequence[Result]) -> str:
    """Return the table, below it what is shipped, and on which machine it was measured."""
    head = [_line(COLUMNS), _line(["---"] * len(COLUMNS))]
    shipped = [f"- {each.title}: {_say_lines(each)}" for each in results if each.lines]
    machines = dict.fromkeys(each.machine for each in results if each.machine)
    versions = {name: version for each in results for name, version in each.servers.items()}
    parts = [
        "\n".join([*head, *map(_row, results)]),
        "\n".join(["What ships:", "", *shipped]) if shipped else "",
        "\n".join(f"Measured on {machine}." for machine in machines),
        ", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _row(result: Result) -> str:
    gain = result.gain
    ratio = NONE if gain is None else f"{gain['ratio']:.2f}× [{gain['low']:.2f}, {gain['high']:.2f}]"
    unit = "" if gain is None or result.metric == "goodput" else " per CPU second"
    return _line(
        [
            result.title,
            result.verdict or NOT_MEASURED,
            ratio + unit,
            NONE if gain is None else f"{gain['pairs']:.0f}",
            " → ".join(_say_failures(*result.failures[arm]) for arm in result.failures) or NONE,
            str(len(result.lines)) if result.lines else NONE,
            f"{result.seconds:.0f}",
            result.reason.replace("|", "\\|"),
        ]
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _say_failures(failed: int, of: int) -> str:
    return f"{failed} of {of}"


def _say_lines(result: Result) -> str:
    return ", ".join(f"{name} {before} → {after}" for name, (before, after) in result.lines.items())
