"""What `tuner verify` and `tuner gate` have found, as JSON for scripts and as Markdown for a pull request."""

from typing import Any

from tuner.ports import Scalar
from tuner.report.regression import BASELINE, NEW, Measurement, NonInferiority, Verification
from tuner.report.regression.screen import say_ratio_of, say_state
from tuner.report.rows import describe_arm, name_p99
from tuner.report.summary import Arm
from tuner.report.summary_json import gain_json
from tuner.report.tables import escape_markdown, markdown_table
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
        "first": None if comparison is None else _arm_json(comparison.first),
        "second": None if comparison is None else _arm_json(comparison.second),
    }


def _arm_json(arm: Arm) -> dict[str, Any]:
    return {
        "config": dict(arm.config), "goodput_rps": arm.goodput_rps, "latency_p99_ms": arm.latency_p99_ms,
        "failures": arm.failures, "requests": arm.requests, "starts": arm.starts,
    }  # fmt: skip


MARKS = {"no slower": "✅", "slower": "❌", "cannot tell": "⚠️"}


def non_inferiority_markdown(found: NonInferiority) -> str:
    """Return what a gate found as Markdown: the verdict, the ratio, both sides, what differs."""
    lines = [f"### {MARKS[found.finding]} {escape_markdown(found.headline)}", ""]
    lines += [escape_markdown(found.reason), ""] if found.reason else []
    comparison = found.measured.comparison
    if comparison is not None:
        lines += [f"**{escape_markdown(say_ratio_of(found, comparison.gain))}**", ""]
        by_load = comparison.gain.by_load.items()
        lines += [
            f"- under {escape_markdown(name)}: {escape_markdown(say_gain(each))}" for name, each in by_load
        ]
        lines += [""] if by_load else []
        head = ("", "requests/s", name_p99(comparison.first), "failures", "starts")
        rows = [
            (found.sides[arm], *describe_arm(side))
            for arm, side in ((BASELINE, comparison.first), (NEW, comparison.second))
        ]
        lines += [*markdown_table(head, rows, numbers=True), ""]
    if found.changes:
        lines += [*_changes(found), ""]
    lines.append(f"{escape_markdown(found.workload)}.")
    lines += ["", *(f"- {escape_markdown(each)}" for each in found.notes)] if found.notes else []
    return "\n".join(lines) + "\n"


def _changes(found: NonInferiority) -> list[str]:
    """Return a table of the settings in which both sides differ."""
    rows: list[tuple[str, ...]] = [
        (name, _plain(old), _plain(new)) for name, (old, new) in found.changes.items()
    ]
    return markdown_table(("setting", found.sides[BASELINE], found.sides[NEW]), rows)


def _plain(value: Scalar | None) -> str:
    return NOTHING if value is None else say_value(value)
