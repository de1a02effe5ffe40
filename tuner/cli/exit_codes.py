"""Exit codes; those of errors stand with the errors."""

from typing import TYPE_CHECKING

from tuner.errors import RestoreFailed, TargetError, UsageError

if TYPE_CHECKING:
    from tuner.report.summary import Summary

NOTHING_BETTER = 1
BITES = 1
"""A limit bites now (`tuner advise`)."""
NOT_READY = 1
"""Nothing can be tuned on this host (`tuner check` without a study)."""
FAULT = 5
"""Something that nobody foresaw, or output that could not be written: it says nothing of the study."""
CANNOT_TELL = 6
"""The planned pairs of a gate or a verification do not decide."""
INTERRUPTED = 130
MEANINGS = {
    0: "Done; for a study: its winner is confirmed.",
    NOTHING_BETTER: "Done, and no better configuration is proven; for advise: a limit is hit now; for check "
    "without a study: nothing can be tuned here.",
    UsageError.exit_code: "The command or the study file is wrong.",
    TargetError.exit_code: (
        "The target cannot be used: a program or a permission is missing, or the host is too noisy."
    ),
    RestoreFailed.exit_code: "A backup could not be restored.",
    FAULT: "tuner itself failed, or could not write its output; the code says nothing about the study.",
    CANNOT_TELL: "The planned pairs of a gate or a verification do not decide.",
    INTERRUPTED: "Interrupted; tuner has restored the changes of the run or apply.",
}
"""As the man page has them."""


def verdict_code(summary: "Summary") -> int:
    """Return the exit code of a study: 0 when its winner is confirmed."""
    return 0 if summary.gain is not None and summary.gain.is_proven else NOTHING_BETTER
