"""The studies of a corpus as a table, and as rows for scripts."""

import math
from collections.abc import Sequence
from typing import Any

from tuner.corpus.corpus_study import CorpusStudy
from tuner.corpus.proposals import Alike

HEAD = ("study", "finished", "servers", "cores", "MiB", "connections", "tried", "gain")
FIRST_NUMBER = 3
"""Columns from here on are numbers."""


def corpus_rows(studies: Sequence[CorpusStudy]) -> list[dict[str, Any]]:
    """Return what a script may ask of each study."""
    return [
        {
            "study": each.id, "finished": each.finished, "tuner": each.tuner, "metric": each.metric,
            "servers": dict(each.surroundings.servers), "cpu": each.surroundings.cpu,
            "cores": each.surroundings.cores, "memory_mib": each.surroundings.memory_mib,
            "kernel": each.surroundings.kernel, "workload": dict(each.surroundings.workload),
            "tried": len(each.tried),
            "gain": None if each.shipped is None else {
                "ratio": math.exp(each.shipped.log_gain), "low": math.exp(each.shipped.low),
                "high": math.exp(each.shipped.high), "changes": dict(each.shipped.changes),
            },
        }
        for each in studies
    ]  # fmt: skip


def corpus_text(studies: Sequence[CorpusStudy]) -> str:
    """Return a line for each study; a sentence for an empty corpus."""
    if not studies:
        return "There is no study in this corpus. Add one: tuner corpus add STUDY"
    rows = [HEAD, *map(_cells, studies)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < FIRST_NUMBER else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _cells(study: CorpusStudy) -> tuple[str, ...]:
    around, shipped = study.surroundings, study.shipped
    return (
        study.id,
        study.finished,
        ", ".join(f"{name} {version}".strip() for name, version in around.servers.items()),
        str(around.cores),
        str(around.memory_mib),
        str(around.workload.get("connections", "–")),
        str(len(study.tried)),
        "none" if shipped is None else describe_gain(shipped.log_gain, shipped.low, shipped.high),
    )


def describe_studies(alike: Sequence[Alike]) -> str:
    """Return how many studies of alike hosts there are."""
    return "a study of a similar host" if len(alike) == 1 else f"{len(alike)} studies of similar hosts"


def describe_gain(log_gain: float, low: float, high: float) -> str:
    """Return a gain in log points as a factor with its interval."""
    return f"{math.exp(log_gain):.2f}× [{math.exp(low):.2f}, {math.exp(high):.2f}]"
