"""Golden cases of the load generators: NAME.json beside what the real program printed and wrote.

A case has the options of the adapter if it takes any, the workload, how the command ended, the names of its
output files (stored as NAME.FILE) and what is expected: the fields of LoadResult that are listed, or
`load_failed` with the beginning of the message.
"""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tuner.adapters.loads.ab import Ab
from tuner.adapters.loads.command import Command
from tuner.adapters.loads.h2load import H2load
from tuner.adapters.loads.k6 import K6
from tuner.adapters.loads.oha import Oha
from tuner.adapters.loads.wrk import Wrk
from tuner.ports import Completed, Files, LoadGenerator, LoadResult, Workload

FOLDER = Path(__file__).parent
ADAPTERS = {adapter.name: adapter for adapter in (Ab, Command, H2load, K6, Oha, Wrk)}


def cases() -> list[Path]:
    """Find every case of every adapter."""
    return [case for adapter in ADAPTERS for case in sorted((FOLDER / adapter).glob("*.json"))]


def load_of(case: Path) -> LoadGenerator:
    """Make the adapter of a case."""
    return ADAPTERS[case.parent.name](**json.loads(case.read_text()).get("options", {}))


def read(case: Path) -> tuple[Completed, Files, Workload, Mapping[str, Any]]:
    """Read one case back into what `parse` takes, and what is expected of it."""
    stored = json.loads(case.read_text())
    workload = Workload(**stored["workload"], directory=PurePosixPath("/golden"))
    completed = Completed(
        argv=(case.parent.name,),
        stdout=_content(case, "stdout"),
        stderr=_content(case, "stderr"),
        **stored["completed"],
    )
    outputs = {workload.directory / name: _content(case, name) for name in stored["outputs"]}
    return completed, outputs, workload, stored["expected"]


def expectation(result: LoadResult) -> dict[str, Any]:
    """Describe a result in the terms of a case."""
    kinds = ("connect", "read", "write", "timeout", "status", "length", "other")
    counted = {kind: getattr(result.failures, kind) for kind in kinds}
    latency, connect_time = result.latency, result.connect_time
    return {
        "duration_s": result.duration_s,
        "correct": result.correct,
        "failures": {kind: count for kind, count in counted.items() if count},
        "bytes": result.bytes,
        "latency": latency
        and {
            "samples": latency.samples,
            "p50_ms": latency.quantiles_ms.get(0.5),
            "p99_ms": latency.quantiles_ms.get(0.99),
            "max_ms": latency.max_ms,
        },
        "connect_ms": connect_time and [connect_time.min_ms, connect_time.mean_ms, connect_time.max_ms],
        "aborted": result.aborted,
        "generator_fault": result.generator_fault,
    }


def _content(case: Path, name: str) -> bytes:
    path = case.with_name(f"{case.stem}.{name}")
    return path.read_bytes() if path.exists() else b""
