"""Exit codes; those of errors stand with the errors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.report.summary import Summary

NOTHING_BETTER = 1
FAULT = 5
"""Something that nobody foresaw, or output that could not be written: it says nothing of the study."""
CANNOT_TELL = 6
"""The planned pairs of a gate or a verification do not decide."""
INTERRUPTED = 130


def verdict_code(summary: "Summary") -> int:
    """Return the exit code of a study: 0 when its winner is confirmed."""
    return 0 if summary.gain is not None and summary.gain.is_proven else NOTHING_BETTER
