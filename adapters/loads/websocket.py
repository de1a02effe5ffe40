"""WebSocket messages: N connections, each of which sends a message when the echo of the last one has come.

The program beside this file does it with the library websockets. A message that comes back as it was sent,
byte for byte, is correct; goodput is echoes per second. With `keepalive: false` each message has a
connection, and so a handshake, of its own. Over TLS nothing is sent.
"""

import sys
from collections.abc import Mapping
from itertools import chain, repeat
from pathlib import Path, PurePosixPath
from typing import ClassVar

from tuner.errors import UsageError
from tuner.kit.latency import latency_of_samples
from tuner.kit.load_command import Ability, ended_after, header_options, refuse_unsendable
from tuner.kit.load_output import (
    as_count,
    as_object,
    connect_time,
    json_object,
    positive,
    reading,
    text_of,
    unreadable,
)
from tuner.kit.packages import say_extra
from tuner.ports import (
    FAILURE_KINDS,
    WEBSOCKET,
    Argv,
    Completed,
    Failures,
    Files,
    LoadResult,
    Workload,
)

PROGRAM = Path(__file__).with_name("_websocket_program.py")
GRACE_S = 3.0
"""How long after the window's end it may take to add up what was counted."""


class WebSocket:
    """The load generator for WebSocket: it sends messages and compares every echo."""

    name: ClassVar[str] = "websocket"
    package: ClassVar[str] = ""
    speaks: ClassVar[str] = WEBSOCKET
    """What it sends is no HTTP request; others send nothing else."""

    def version_command(self) -> Argv | None:
        return (sys.executable, "-I", str(PROGRAM), "--version")

    def read_version(self, printed: Completed) -> str:
        if printed.returncode:
            raise UsageError(
                "load generator websocket: the Python package websockets is not installed. "
                f"Install this package: {say_extra('websocket')}"
            )
        return text_of(printed.stdout).strip().removeprefix("websockets ")

    def files(self, workload: Workload) -> Files:
        return {}

    def command(self, workload: Workload) -> Argv:
        refuse_unsendable(self.name, workload, able=(Ability.HEADERS,))
        if workload.url.startswith("https:"):
            raise UsageError(
                "load generator websocket: this load generator does not speak TLS. Load an http:// address "
                "instead."
            )
        argv = (
            *(sys.executable, "-I", str(PROGRAM)),
            *("--connections", str(workload.connections)),
            *("--processes", str(min(workload.threads, workload.connections))),
            *("--seconds", f"{workload.duration_s:g}"),
            *(() if workload.keepalive else ("--close",)),
            *header_options(workload, "--header"),
            workload.url,
        )
        return ended_after(workload.duration_s + GRACE_S, argv)

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return ()

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        with reading(self.name, "result", completed):
            if completed.returncode:
                raise unreadable(self.name, "it failed", completed)
            return _result(json_object(text_of(completed.stdout)))


def _result(report: Mapping[str, object]) -> LoadResult:
    counted = {kind: as_count(count) for kind, count in as_object(report["failures"]).items()}
    latencies = {int(each): as_count(count) for each, count in as_object(report["latencies_us"]).items()}
    fault = report["fault"]
    return LoadResult(
        duration_s=positive(report["duration_s"]),
        correct=as_count(report["correct"]),
        failures=Failures(**{kind: counted.get(kind, 0) for kind in FAILURE_KINDS}),
        bytes=as_count(report["bytes"]),
        latency=latency_of_samples([*chain.from_iterable(repeat(*each) for each in latencies.items())]),
        connect_time=connect_time(report["connect_ms"], mean="mean"),
        generator_fault=None if fault is None else str(fault),
    )
