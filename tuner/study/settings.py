"""A study as frozen objects: what is tuned where, under which load, towards what."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tuner.optimize.catalogue import DEFAULT_OPTIMIZER
from tuner.ports import RequestKind, Scalar
from tuner.space.yaml_text import Document
from tuner.study.backend import BackendSettings
from tuner.study.folder import DATABASE
from tuner.study.mix import define_mix, describe_mix
from tuner.study.objective import Constraint, Objective
from tuner.study.storage_url import sqlite_url

if TYPE_CHECKING:
    from tuner.space import Dimension, Space

LOCAL = "local"
CONSTRAINTS = "constraints"
"""Name of a study's bounds in its definition."""


DEFAULT_GENERATOR = "wrk"
"""Of a study that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSettings:
    """Which machine is tuned, and how."""

    host: str = "local"
    """`local`, or `ssh://user@host:port`."""
    mode: str = "sandbox"
    watchdog_s: float = 120.0
    """In managed mode: without a sign of life from the tuner for so long, the target puts itself back."""

    @property
    def is_managed(self) -> bool:
        return self.mode == "managed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """What is sent, by what."""

    generator: str = DEFAULT_GENERATOR
    hosts: tuple[str, ...] = (LOCAL,)
    """Where the load comes from: `local`, or `ssh://user@host:port`; in sandbox mode from inside of it."""
    path: str = "/index.html"
    """On the server; in managed mode it may be a whole URL. With a mix, the page that is waited for."""
    requests: tuple[RequestKind, ...] = ()
    """The mix that is sent; empty for the path alone."""
    connections: int = 100
    keepalive: bool = True
    threads: int = 1
    protocol: str = "http/1.1"
    command: tuple[str, ...] = ()
    """Of the generator `command`: its argv with {url}, {connections}, {duration_s}, {directory}."""
    result: Mapping[str, Any] | None = None
    """Of the generator `command`: how its output is read."""
    script: Path | None = None
    """Of generators that take one (k6)."""
    token_directory: PurePosixPath | None = None
    """Document root of the site on the target, where its address is another host's (a load balancer)."""

    def options(self) -> dict[str, object]:
        """Return the options that the generator's class takes; most take none."""
        given = {"command": self.command, "result": self.result, "script": self.script}
        return {name: value for name, value in given.items() if value}

    def facts(self, *, page_bytes: int | None, is_loopback: bool, is_installed: bool) -> dict[str, Scalar]:
        """Return what is known of the load for `acts_when` of a space.

        Of a command or a script of the user's own, what it sends is not known.

        Args:
            page_bytes: length of the body of each correct answer; None where it changes.
            is_loopback: whether the load stays on the machine.
            is_installed: whether it goes to installed services.
        """
        place: dict[str, Scalar] = {"loopback": is_loopback, "installed": is_installed}
        if self.command or self.script:
            return place
        return {
            **place,
            "keepalive": self.keepalive,
            "protocol": self.protocol,
            "tls": self.protocol == "h2" or self.path.startswith("https:"),
            "pages": max(1, len({each.path for each in self.requests})),
            # No load generator sends a request before the answer to the last one, or data with its SYN.
            "pipelining": False,
            "fastopen": False,
            **({} if page_bytes is None or self.requests else {"page_bytes": page_bytes}),
        }

    def describe(self) -> str:
        """Return the workload in one line."""
        kept = "keep-alive" if self.keepalive else "Connection: close"
        there = "" if self.hosts == (LOCAL,) else f" on {', '.join(self.hosts)}"
        asked = describe_mix(self.requests) or self.path
        return f"{self.generator}{there}, {asked}, {self.connections} connections, {kept}, {self.protocol}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One study file."""

    path: Path
    name: str
    servers: tuple[str, ...]
    """In a sandbox, those that accept connections stand behind each other, the one under load first."""
    space: tuple[str | Document, ...]
    """Names, paths and refinements, each of which knows its line."""
    target: TargetSettings
    load: LoadSettings
    content: str
    """`builtin`, or a document root."""
    objective: Objective
    constraints: tuple[Constraint, ...]
    preset: str
    minutes: float | None
    trials: int | None
    storage: str
    seed: int
    optimizer: str = DEFAULT_OPTIMIZER
    line_price: float = 0.01
    """Gain that each changed setting has to bring to be shipped, as a share; at most a tenth of the gain."""
    """A name, or the import path of an Optuna sampler."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """Server → the one that it passes requests to; empty where each passes them to the next."""
    backend: BackendSettings | None = None
    """The application that is started behind the servers."""
    warm_start: tuple[Path, ...] = ()
    """Study files of earlier studies."""

    @property
    def folder(self) -> Path:
        """Where everything that belongs to the study is kept: nginx.yaml → nginx.study/."""
        return self.path.with_suffix(".study")

    @property
    def storage_url(self) -> str:
        """Return the Optuna storage URL."""
        if self.storage != "sqlite":
            return self.storage
        return sqlite_url(self.folder / DATABASE)

    def definition(self, space: "Space") -> dict[str, str]:
        """Return all that makes two starts comparable, each part by its name; the budget is not among it."""
        load = self.load
        default = {name: str(value) for name, value in space.default().items()}
        return {
            "study": self.name,
            "servers": ", ".join(self.servers),
            **{f"backend of {name}": backend for name, backend in sorted(self.backends.items())},
            **({"backend": self.backend.describe()} if self.backend else {}),
            "load": f"{load.describe()}, {load.threads} threads",
            "load.command": shlex.join(load.command),
            "load.result": str(load.result or ""),
            "load.script": load.script.name if load.script else "",
            **({"load.requests": define_mix(load.requests)} if load.requests else {}),
            "content": self.content,
            "objective": str(self.objective),
            CONSTRAINTS: ", ".join(map(str, self.constraints)),
            **{f"parameter {each.name}": _show_range(each) for each in space.dimensions},
            **{f"default of {name}": value for name, value in sorted(default.items())},
        }


def _show_range(dimension: "Dimension") -> str:
    if dimension.kind == "categorical":
        return " | ".join(map(str, dimension.choices))
    scale = ", log" if dimension.log else ""
    return f"{dimension.low:g} to {dimension.high:g} in steps of {dimension.step or 0:g}{scale}"
