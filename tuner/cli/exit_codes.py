"""How a command ends that ends well, or is ended; errors know their own codes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.report.summary import Summary

NOTHING_BETTER = 1
INTERRUPTED = 130


def verdict_code(summary: "Summary") -> int:
    """Say with which code a study ends: 0 when its winner is confirmed."""
    return 0 if summary.gain is not None and summary.gain.verdict == "improved" else NOTHING_BETTER
