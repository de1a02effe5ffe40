"""Finds the server and kernel settings that serve a load best on a machine, and proves it.

study           what is tuned where, under which load, for how long: a file, and a folder beside it
target          the host that is tuned; its servers are private instances (sandbox) or installed (managed)
space           the parameters of one or more servers, each with range, default and reason
configuration   one value for every active parameter; the default, or the original, is the baseline
workload        what the load generator sends: address, connections, keep-alive, length, rate
window          one counted slice of load; its goodput are correct responses per second, nothing else
trial           one fresh start of the servers with a configuration, measured: several windows, one replicate
speedup         goodput relative to the baseline's level at that time, as 1.34×
incumbent       the best feasible configuration so far; the winner is one that was confirmed in fresh pairs
gain            what the winner serves more than the default, with its interval: the only claim that is made
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.commands.all_targets import run
    from tuner.commands.contests.compare import compare
    from tuner.commands.contests.contest import compare_several
    from tuner.commands.contests.curve import curve
    from tuner.commands.contests.sweep import sweep
    from tuner.commands.contests.versus import versus
    from tuner.commands.outputs import write_export
    from tuner.commands.regression.gate import gate
    from tuner.commands.regression.verify import Remeasuring, verify
    from tuner.commands.session import Reading, read
    from tuner.commands.template import copy_study
    from tuner.errors import TargetError, TunerError, UsageError
    from tuner.report.contest import Contest
    from tuner.report.curve import Curve
    from tuner.report.progress import LineProgress
    from tuner.report.regression import NonInferiority, Verification
    from tuner.report.summary import Comparison, Summary
    from tuner.report.sweep import Sweep
    from tuner.statistics.baseline_level import combine
    from tuner.study import Study, load_study

__version__ = "0.5.0"
__all__ = [
    "Comparison", "Contest", "Curve", "LineProgress", "NonInferiority", "Reading", "Remeasuring", "Study",
    "Summary", "Sweep", "TargetError", "TunerError", "UsageError", "Verification", "combine", "compare",
    "compare_several", "copy_study", "curve", "gate", "load_study", "read", "run", "sweep", "verify",
    "versus", "write_export",
]  # fmt: skip

_HOMES = {
    "tuner.commands.all_targets": ("run",),
    "tuner.commands.contests.compare": ("compare",),
    "tuner.commands.contests.contest": ("compare_several",),
    "tuner.commands.contests.curve": ("curve",),
    "tuner.commands.outputs": ("write_export",),
    "tuner.commands.regression.gate": ("gate",),
    "tuner.commands.regression.verify": ("Remeasuring", "verify"),
    "tuner.commands.session": ("Reading", "read"),
    "tuner.commands.contests.sweep": ("sweep",),
    "tuner.commands.template": ("copy_study",),
    "tuner.commands.contests.versus": ("versus",),
    "tuner.errors": ("TargetError", "TunerError", "UsageError"),
    "tuner.report.contest": ("Contest",),
    "tuner.report.curve": ("Curve",),
    "tuner.report.progress": ("LineProgress",),
    "tuner.report.regression": ("NonInferiority", "Verification"),
    "tuner.report.summary": ("Comparison", "Summary"),
    "tuner.report.sweep": ("Sweep",),
    "tuner.statistics.baseline_level": ("combine",),
    "tuner.study": ("Study", "load_study"),
}


def __getattr__(name: str) -> object:
    """Import what is used: everything at once would take a second, and `tuner --help` needs nothing."""
    for home, names in _HOMES.items():
        if name in names:
            found = getattr(import_module(home), name)
            if isinstance(found, type):
                import_module("tuner.field_help").add_field_help(found)
            return found
    raise AttributeError(f"module 'tuner' has no attribute {name!r}")
