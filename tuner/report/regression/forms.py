"""What `tuner verify` and `tuner gate` have found, as JSON for scripts and as Markdown for a pull request."""

from typing import Any

from tuner.ports import Scalar
from tuner.report.regression import BASELINE, NEW, Measurement, NonInferiority, Verification
from tuner.report.regression.screen import say_ratio_of, say_state
from tuner.report.rows import table_of_arms
from tuner.report.summary_json import arm_json, gain_json
from tuner.report.tables import escape_markdown, join_markdown, markdown_list, markdown_table
from tuner.report.wording import NOTHING, say_gain, say_value


def verification_json(found: Verification) -> dict[str, Any]:
    """Return a verification as JSON values; keys are added, never renamed."""
    return {
        "study": found.study,
        "verdict": found.verdict,
        "headline": found.headline,
        "reason": found.reason or found.failure,
        "place": found.place,
        "settings": [
            {
                "name": each.name, "server": each.server, "wanted": each.wanted, "found": each.found,
                "state": say_state(found, each), "drift": each.drift or None,
            }
            for each in found.settings
        ],
        "failure": found.failure or None,
        "changed": [
            {"what": each.what, "before": each.before, "now": each.now, "meaning": each.meaning}
            for each in found.changed
        ],
        "remarks": list(found.remarks),
        "before": gain_json(found.before, ""),
        "measured": None if found.measured is None else _measurement_json(found.measured),
    }  # fmt: skip


def non_inferiority_json(found: NonInferiority) -> dict[str, Any]:
    """Return what a gate found as JSON values; keys are added, never renamed."""
    return {
        "study": found.study,
        "verdict": found.finding,
        "headline": found.headline,
        "reason": found.reason,
        "new": found.sides[NEW],
        "baseline": found.sides[BASELINE],
        "margin": found.margin,
        "bound": 1 - found.margin,
        "workload": found.workload,
        **_measurement_json(found.measured),
        "changes": {name: list(pair) for name, pair in found.changes.items()},
        "notes": list(found.notes),
    }


def _measurement_json(measured: Measurement) -> dict[str, Any]:
    comparison = measured.comparison
    return {
        "finding": measured.finding,
        "fault": measured.fault or None,
        "most_pairs": measured.most_pairs,
        "gain": None if comparison is None else gain_json(comparison.gain, ""),
        "first": None if comparison is None else arm_json(comparison.first),
        "second": None if comparison is None else arm_json(comparison.second),
    }


MARKS = {"no slower": "✅", "slower": "❌", "cannot tell": "⚠️"}


def non_inferiority_markdown(found: NonInferiority) -> str:
    """Return what a gate found as Markdown: the verdict, the ratio, both sides, what differs."""
    comparison, old, new = found.measured.comparison, found.sides[BASELINE], found.sides[NEW]
    measured: list[str | list[str]] = []
    if comparison is not None:
        head, *rows = table_of_arms([(old, comparison.first), (new, comparison.second)])
        measured = [
            f"**{escape_markdown(say_ratio_of(found, comparison.gain))}**",
            markdown_list(
                f"under {name}: {say_gain(each)}" for name, each in comparison.gain.by_load.items()
            ),
            markdown_table(head, rows, numbers=True),
        ]  # fmt: skip
    changes = [(name, *map(_plain, pair)) for name, pair in found.changes.items()]
    return join_markdown(
        f"### {MARKS[found.finding]} {escape_markdown(found.headline)}",
        escape_markdown(found.reason),
        *measured,
        markdown_table(("setting", old, new), changes) if changes else "",
        f"{escape_markdown(found.workload)}.",
        markdown_list(found.notes),
    )


def _plain(value: Scalar | None) -> str:
    return NOTHING if value is None else say_value(value)
