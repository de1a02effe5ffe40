"""Windows of several loads next to each other, as one window that counts when all of them do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

from tuner.deploy.deployment import Deployment
from tuner.measure.window import Load
from tuner.ports import Failures
from tuner.records import Window
from tuner.records.latency import merge

LEVELS = frozenset(
    {
        "cpus", "server_cpus", "server_processes", "server_processes_before", "server_threads",
        "sockets_in_use", "time_wait", "time_wait_before",
    }
)  # fmt: skip
"""Counters that are no differences over a window; those of bytes and shares are none either."""
OF_LEVELS = ("_bytes", "_share")


def run_round(
    run: Callable[[Deployment, Load], Window], deployment: Deployment, load: Load, turn: int
) -> Window:
    """Run a window of each load, another one first in each turn, so that all have every place as often.

    With one load it is the window.
    """
    if not load.beside:
        return run(deployment, load)
    loads = (load, *load.beside)
    first = turn % len(loads)
    parts = {each.name: run(deployment.under(each.name), each) for each in (*loads[first:], *loads[:first])}
    return join({each.name: parts[each.name] for each in loads})


def join(parts: Mapping[str, Window]) -> Window:
    """Return the sums of windows that were measured next to each other; verdicts name the load."""
    windows = list(parts.values())
    latencies = [each.latency for each in windows if each.latency is not None]
    kinds = [each.name for each in fields(Failures)]
    return Window(
        started_s=min(each.started_s for each in windows),
        duration_s=sum(each.duration_s for each in windows),
        correct=sum(each.correct for each in windows),
        failures=Failures(**{kind: sum(getattr(each.failures, kind) for each in windows) for kind in kinds}),
        bytes=sum(each.bytes for each in windows),
        latency=merge(latencies) if latencies else None,
        generator_cpu=max(each.generator_cpu for each in windows),
        counters=_join_counters(windows),
        verdicts=tuple(
            replace(verdict, reason=f"{name}: {verdict.reason}")
            for name, each in parts.items()
            for verdict in each.verdicts
        ),
        parts=dict(parts),
    )


def _join_counters(windows: Sequence[Window]) -> Mapping[str, float]:
    """Add up what was counted, and average levels over the time; only what all windows have."""
    names = set.intersection(*(set(each.counters) for each in windows))
    total_s = sum(each.duration_s for each in windows) or 1.0
    return {
        name: sum(each.counters[name] * each.duration_s for each in windows) / total_s
        if name in LEVELS or name.endswith(OF_LEVELS)
        else sum(each.counters[name] for each in windows)
        for name in sorted(names)
    }
