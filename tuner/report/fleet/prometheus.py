"""Who works on a study, in the text format of Prometheus, for node_exporter's textfile collector.

The format: prometheus.io/docs/instrumenting/exposition_formats.
"""

from collections.abc import Callable

from tuner.report.fleet import Fleet, HostRow

METRICS: tuple[tuple[str, str, str, Callable[[HostRow], float | None]], ...] = (
    ("tuner_trials_total", "counter", "Trials that have ended.", lambda row: row.trials),
    (
        "tuner_trials_failed_total",
        "counter",
        "Trials in which the configuration failed.",
        lambda row: row.failed,
    ),
    (
        "tuner_trials_lost_total",
        "counter",
        "Trials that gave no result for other reasons.",
        lambda row: row.lost,
    ),
    (
        "tuner_trials_per_hour",
        "gauge",
        "Trials per hour, over the last hour in which the host measured.",
        lambda row: row.per_hour,
    ),
    ("tuner_measuring", "gauge", "Whether a trial runs on the host now.", lambda row: float(bool(row.doing))),
    ("tuner_trial_age_seconds", "gauge", "Seconds since the running trial began.", lambda row: row.since_s),
    (
        "tuner_heartbeat_age_seconds",
        "gauge",
        "Seconds since the host's worker was last heard.",
        lambda row: row.silent_s,
    ),
)
"""Name, type, help and value; a host without the value has no line."""
RUNNING = "tuner_running"
"""Of the study, whatever its hosts were at when their workers were killed."""


def prometheus_text(fleet: Fleet) -> str:
    """Return all metrics: whether anybody is at work, and a line for each host that has the others."""
    lines = [
        f"# HELP {RUNNING} Whether any worker is at work on the study.",
        f"# TYPE {RUNNING} gauge",
        f'{RUNNING}{{study="{_escape(fleet.study)}"}} {fleet.state == "running":d}',
    ]
    for name, kind, told, value in METRICS:
        lines += [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]
        lines += [
            f'{name}{{study="{_escape(fleet.study)}",host="{_escape(row.host)}"}} {found:g}'
            for row in fleet.hosts
            if (found := value(row)) is not None
        ]
    return "\n".join(lines) + "\n"


def _escape(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
