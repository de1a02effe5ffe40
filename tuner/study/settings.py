"""A study as frozen objects: what is tuned where, under which load, towards what."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tuner.hosts.load_places import LOCAL
from tuner.optimize.catalogue import DEFAULT_OPTIMIZER
from tuner.ports import H2, HTTP1, TLS, LoadShape, RequestKind, Scalar
from tuner.records import Metric
from tuner.records.blend import Across, AcrossHosts, Blend, Hosts
from tuner.space.yaml_text import Document
from tuner.study.backend import BackendSettings
from tuner.study.databases.storage_url import sqlite_url
from tuner.study.folder import DATABASE
from tuner.study.loads.builtin_loads import BUILTIN_LOADS
from tuner.study.loads.mix import define_body, define_mix, describe_headers, describe_mix, hide_secrets
from tuner.study.objective import Constraint, Objective
from tuner.study.presets import PRESETS, Plan
from tuner.study.schema import DEFAULT_GENERATOR, TargetSettings
from tuner.study.server_options import ServerOptions

if TYPE_CHECKING:
    from tuner.space import Dimension, Space

CONSTRAINTS = "constraints"
"""Name of a study's bounds in its definition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Several machines, for all of which the winner is to hold."""

    entries: tuple[TargetSettings, ...]
    """Alike but for their hosts."""
    across: AcrossHosts = AcrossHosts.WORST
    models_unlike: bool = False
    """Whether machines may differ in hardware: each is compared with its own level all the same."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(each.host for each in self.entries)

    def describe(self) -> str:
        """Return what the winner is to hold for, in one line."""
        return f"{self.across} of {', '.join(self.hosts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings(LoadShape):
    """What is sent, by what."""

    connections: int = 100
    keepalive: bool = True
    generator: str = DEFAULT_GENERATOR
    hosts: tuple[str, ...] = (LOCAL,)
    """Where the load comes from: `local`, or `ssh://user@host:port`; in sandbox mode from inside of it."""
    path: str = "/index.html"
    """On the server; in managed mode it may be a whole URL. With a mix, the page that is waited for."""
    requests: tuple[RequestKind, ...] = ()
    """The mix that is sent; empty for the path alone."""
    content: str = ""
    """Name of the built-in content that path and mix are of; empty for the study's own."""
    rate_rps: float | None = None
    """Requests per second that are due; None for a load that is sent as fast as responses come."""
    requests_total: int | None = None
    """Requests after which each window ends; None where windows have the plan's length."""
    time_limit_s: float = 60.0
    """Of a window that ends after so many requests: what is not answered by then has failed."""
    timeout_s: float | None = None
    """Seconds after which a client without a response counts as failed; None: by the response time."""
    tls: bool = False
    """Whether private servers speak TLS; installed ones do where the URL says https://."""
    certificate: PurePosixPath | None = None
    """Managed: file by which the server's certificate is checked; None for those that the system trusts."""
    verifies: bool = True
    """Managed: whether the server's certificate is checked at all."""
    command: tuple[str, ...] = ()
    """Of the generator `command`: its argv with {url}, {connections}, {duration_s}, {directory}, {threads}
    and {certificate}, the file that a private server's certificate is checked by."""
    result: Mapping[str, Any] | None = None
    """Of the generator `command`: how its output is read."""
    script: Path | None = None
    """Of generators that take one (k6)."""
    token_directory: PurePosixPath | None = None
    """Document root of the site on the target, where its address is another host's (a load balancer)."""

    @property
    def offer(self) -> str:
        """Return what a private server has to offer for it: TLS, H2, H2C, or HTTP1, which each does."""
        return TLS if self.tls and self.protocol == HTTP1 else self.protocol

    @property
    def accepts_gzip(self) -> bool:
        """Return whether some requests ask for compressed answers."""
        headers = (each.headers for each in self.requests)
        asked = [
            value for each in headers for name, value in each.items() if name.lower() == "accept-encoding"
        ]
        return any("gzip" in each.lower() for each in (self.accept_encoding, *asked))

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
        # A compressed page is as long as the server's settings make it.
        is_open = bool(self.requests or self.accept_encoding)
        return {
            **place,
            "keepalive": self.keepalive,
            "protocol": self.protocol,
            "tls": self.tls or self.protocol == H2 or self.path.startswith("https:"),
            "streams": self.streams,
            "accepts_gzip": self.accepts_gzip,
            "pages": max(1, len({each.path for each in self.requests})),
            # No load generator sends a request before the last one's answer, data with its SYN, or a body.
            "pipelining": False,
            "fastopen": False,
            "uploads": False,
            **({} if page_bytes is None or is_open else {"page_bytes": page_bytes}),
        }

    def describe(self) -> str:
        """Return the workload in one line."""
        kept = "keep-alive" if self.keepalive else "Connection: close"
        there = "" if self.hosts == (LOCAL,) else f" on {', '.join(self.hosts)}"
        builtin = BUILTIN_LOADS.get(self.content)
        asked = builtin.title if builtin else describe_mix(self.requests) or self.path
        more = (
            *((f"{self.streams} requests at once on each",) if self.streams > 1 else ()),
            *(("over TLS",) if self.offer == TLS else ()),
            *((f"accepts {self.accept_encoding}",) if self.accept_encoding else ()),
            *((f"headers {describe_headers(self.headers)}",) if self.headers else ()),
            *(() if self.verifies else ("certificates not verified",)),
            *(() if self.rate_rps is None else (f"{self.rate_rps:,.8g} requests/s",)),
            *(() if self.requests_total is None else (f"windows of {self.requests_total:,} requests",)),
            *(() if self.timeout_s is None else (f"timeout {self.timeout_s:g} s",)),
        )
        return ", ".join(
            (
                f"{self.generator}{there}", asked, f"{self.connections} connections", kept, self.protocol,
                *more,
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLoad:
    """One of several loads of a study, or of its check loads."""

    name: str
    weight: float
    """Relative to the others."""
    load: LoadSettings


def name_check_load(name: str) -> str:
    """Return what results call a mix of `check_loads:`; no other load has such a name."""
    return f"requests of {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One study file."""

    path: Path
    """The study file."""
    name: str
    """Its name; also that of the Optuna study."""
    servers: tuple[str, ...]
    """In a sandbox, those that accept connections stand behind each other, the one under load first."""
    space: tuple[str | Document, ...]
    """Names, paths and refinements, each of which knows its line."""
    target: TargetSettings
    """The machine that is tuned, and how."""
    load: LoadSettings
    """The load, or the first of several."""
    content: str
    """`builtin`, or a document root."""
    objective: Objective
    """What is maximized, and what is minimized beside it."""
    constraints: tuple[Constraint, ...]
    """Bounds that the winner has to meet."""
    preset: str
    """quick, standard or thorough."""
    minutes: float | None
    """Wall time of the run; None for that of the preset."""
    trials: int | None
    """Most configurations to try; None for the number of the preset."""
    window_s: float | None = None
    """Seconds of each window; None: by preset, connections and response time."""
    warmup_s: float | None = None
    """Seconds of load before the first window; None: likewise."""
    seed: int
    """Random seed."""
    optimizer: str = DEFAULT_OPTIMIZER
    """Its name, or the import path of an Optuna sampler."""
    line_price: float = 0.01
    """Gain that each changed setting has to bring to be shipped, as a share; at most a tenth of the gain."""
    targets: Targets | None = None
    """All machines of a study with several of them; `target` is the first, or that of a worker."""
    loads: tuple[NamedLoad, ...] = ()
    """All loads of a study with several of them, each measured in every trial; empty for one."""
    across: Across = Across.WEIGHTED
    """What counts of the gains under several loads."""
    check_loads: tuple[NamedLoad, ...] = ()
    """Mixes of requests for the robustness checks, besides the check loads that tuner makes of `load`."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """Server → the one that it passes requests to; empty where each passes them to the next."""
    options: Mapping[str, ServerOptions] = field(default_factory=dict)
    """Server → its templates and commands, where the study describes it itself."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Server → the path of its program on the target, where the study names one."""
    backend: BackendSettings | None = None
    """The application that is started behind the servers."""
    warm_start: tuple[Path, ...] = ()
    """Study files of earlier studies."""
    title: str = ""
    """What it asks, in one line."""
    source: str = ""
    """Where its question comes from."""

    def plan(self, preset: str) -> Plan:
        """Return how long each trial is loaded under a preset, before the response time is known."""
        plan = PRESETS[preset].as_set(window_s=self.window_s, warmup_s=self.warmup_s)
        plan = plan.under(max(each.connections for each in self.all_loads))
        if self.load.rate_rps is None or self.objective.metric is not Metric.LATENCY_P99:
            return plan
        return plan.for_tail(self.load.rate_rps)

    def adapter_options(self, server: str) -> dict[str, object]:
        """Return the options that the class of a server's adapter takes; mostly there are none."""
        own = self.options[server].arguments() if server in self.options else {}
        return own | ({"program": self.programs[server]} if server in self.programs else {})

    @property
    def folder(self) -> Path:
        """Where everything that belongs to the study is kept: nginx.yaml → nginx.study/."""
        return self.path.with_suffix(".study")

    @property
    def hosts(self) -> Hosts | None:
        """Return the hosts for all of which the winner is to hold; None for a study with one target."""
        return None if self.targets is None else Hosts(names=self.targets.hosts, across=self.targets.across)

    @property
    def storage_url(self) -> str:
        """Return the Optuna storage URL."""
        return sqlite_url(self.folder / DATABASE)

    @property
    def all_loads(self) -> tuple[LoadSettings, ...]:
        """Return every load, one or several."""
        return tuple(each.load for each in self.loads) or (self.load,)

    @property
    def sent_loads(self) -> tuple[LoadSettings, ...]:
        """Return every load that is sent at any time, those of robustness checks last."""
        return (*self.all_loads, *(each.load for each in self.check_loads))

    @property
    def blend(self) -> Blend | None:
        """Return what counts of several loads; None for one."""
        if not self.loads:
            return None
        total = sum(each.weight for each in self.loads)
        return Blend(across=self.across, weights={each.name: each.weight / total for each in self.loads})

    def load_facts(
        self, *, page_bytes: int | None, is_loopback: bool, is_installed: bool
    ) -> dict[str, Scalar]:
        """Return what is known of the load for `acts_when` of a space; of several, where they agree.

        Args:
            page_bytes: length of the body of each correct answer to the first load; None where it changes.
            is_loopback: whether the load stays on the machine.
            is_installed: whether it goes to installed services.
        """
        first, *others = (
            each.facts(
                page_bytes=page_bytes if each is self.load else None,
                is_loopback=is_loopback, is_installed=is_installed,
            )
            for each in self.all_loads
        )  # fmt: skip
        return {
            name: fact for name, fact in first.items() if all(other.get(name) == fact for other in others)
        }

    def describe_load(self) -> str:
        """Return the load in one line, or every one of several."""
        if not self.loads:
            return self.load.describe()
        described = (f"{each.name} ({each.weight:g}): {each.load.describe()}" for each in self.loads)
        return f"{self.across} of {len(self.loads)} loads: {'; '.join(described)}"

    def definition(self, space: "Space") -> dict[str, str]:
        """Return all that makes two trials comparable, each part by its name; the budget is not among it."""
        load = self.load
        default = {name: str(value) for name, value in space.default().items()}
        return {
            "study": self.name,
            "servers": ", ".join(self.servers),
            **{f"backend of {name}": backend for name, backend in sorted(self.backends.items())},
            **{f"server {name}": options.define() for name, options in sorted(self.options.items())},
            **{f"program of {name}": program for name, program in sorted(self.programs.items())},
            **({"backend": self.backend.describe()} if self.backend else {}),
            "load": f"{load.describe()}, {load.threads} threads",
            "load.command": shlex.join(load.command),
            "load.result": str(load.result or ""),
            "load.script": load.script.name if load.script else "",
            **({"load.requests": define_mix(load.requests)} if load.requests else {}),
            **({"load.headers": str(hide_secrets(load.headers))} if load.headers else {}),
            **({"load.body": define_body(load.body).strip()} if define_body(load.body) else {}),
            **({"load.time_limit_s": f"{load.time_limit_s:g}"} if load.requests_total else {}),
            **({"budget.window_s": f"{self.window_s:g}"} if self.window_s is not None else {}),
            **({"budget.warmup_s": f"{self.warmup_s:g}"} if self.warmup_s is not None else {}),
            **({"loads": self._define_loads()} if self.loads else {}),
            **{
                each.name: f"{each.load.describe()}; {define_mix(each.load.requests)}"
                for each in self.check_loads
            },
            **(
                {"targets": f"{self.targets.across} of {', '.join(self.targets.hosts)}"}
                if self.targets
                else {}
            ),
            "content": self.content,
            "objective": str(self.objective),
            CONSTRAINTS: ", ".join(map(str, self.constraints)),
            **{f"parameter {each.name}": _show_range(each) for each in space.dimensions},
            **{f"default of {name}": value for name, value in sorted(default.items())},
        }

    def _define_loads(self) -> str:
        parts = (
            f"{each.load.threads} threads, {define_mix(each.load.requests)}, {each.load.command}, "
            f"{each.load.result}, {each.load.script}, {each.load.time_limit_s:g} s"
            f"{define_body(each.load.body)}"
            for each in self.loads
        )
        return f"{self.describe_load()}; {'; '.join(parts)}"


def _show_range(dimension: "Dimension") -> str:
    if dimension.kind == "categorical":
        return " | ".join(map(str, dimension.choices))
    scale = ", log" if dimension.log else ""
    return f"{dimension.low:g} to {dimension.high:g} in steps of {dimension.step or 0:g}{scale}"
