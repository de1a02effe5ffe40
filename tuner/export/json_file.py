"""Everything that is needed to apply the winner by other means: tuner.json, and tuner-undo.json."""

import json
from typing import Any

from tuner.explain.explanation import Effect
from tuner.export.provenance import explained_settings
from tuner.ports import Config
from tuner.report.summary import Summary
from tuner.report.summary_json import age_json
from tuner.report.wording import say_estimate, say_gain


def export_json(summary: Summary) -> dict[str, bytes]:
    """Write the changed settings by server, and the same with the default's values."""
    changes = summary.space.changes(summary.winner.config, derived=True) if summary.winner else {}
    new = {name: value for name, (_, value) in changes.items()}
    old = {name: value for name, (value, _) in changes.items()}
    return {
        "tuner.json": dump(describe(summary) | {"settings": by_server(summary, new)}),
        "tuner-undo.json": dump(describe(summary) | {"settings": by_server(summary, old)}),
    }


def describe(summary: Summary) -> dict[str, Any]:
    """Return where the settings come from: study, load, host, versions, gain and capacity."""
    fingerprint, gain = summary.fingerprint, summary.gain
    return {
        "study": summary.study,
        "created": summary.created,
        "tuner": summary.version,
        "preset": summary.preset,
        "workload": summary.workload,
        "objective": summary.objective,
        "host": {
            "name": fingerprint.host,
            "kernel": fingerprint.kernel,
            "cpu": fingerprint.cpu,
            "cores": fingerprint.cores,
            "memory_mib": fingerprint.memory_mib,
            "co_located": fingerprint.co_located,
        },
        "versions": {**fingerprint.servers, "generator": fingerprint.generator},
        "gain": None if gain is None else {
            "ratio": gain.ratio, "low": gain.low, "high": gain.high, "pairs": gain.pairs,
            "verdict": gain.verdict, "text": say_gain(gain), "metric": gain.metric.value,
            **age_json(gain),
        },
        "capacity": {
            "default": summary.space.capacity(summary.default.config),
            "winner": summary.space.capacity(summary.winner.config) if summary.winner else None,
            "grows": [str(each) for each in summary.grows],
        },
        "effects": {each.parameter: _describe_effect(each.effect) for each in explained_settings(summary)},
        "also": {name: also for name in summary.shipped if (also := summary.space.also(name))},
    }  # fmt: skip


def _describe_effect(effect: Effect) -> dict[str, Any]:
    return {"ratio": effect.ratio, "low": effect.low, "high": effect.high, "text": say_estimate(effect)}


def by_server(summary: Summary, values: Config) -> dict[str, Config]:
    """Group settings by the server that they are written to; what only the space reckons with is left out."""
    servers = dict.fromkeys(summary.space.server_of(name) for name in values)
    written = {server: summary.space.for_server(values, server) for server in servers}
    return {server: own for server, own in written.items() if own}


def dump(document: dict[str, Any]) -> bytes:
    """Write indented JSON in ASCII that ends in a line feed."""
    return (json.dumps(document, indent=2) + "\n").encode()
