"""The study file as frozen objects. Every refusal names file, line, value and remedy."""

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from tuner.aim import MOST_CONNECTIONS, parse_url
from tuner.errors import UsageError
from tuner.objective import GOODPUT, Constraint, Objective, parse_constraint, parse_objective
from tuner.optimize.catalogue import DEFAULT_OPTIMIZER, ONE_OBJECTIVE, OPTIMIZERS
from tuner.plan import PRESETS
from tuner.ports import Scalar
from tuner.space.problems import problem, quote, suggest
from tuner.space.yaml_text import Document, Plain, read_yaml
from tuner.storage_url import show_url, sqlite_url

if TYPE_CHECKING:
    from tuner.space import Dimension, Space

Kind = TypeVar("Kind")
LOCAL = "local"
HOST_URL = re.compile(r"ssh://[^\s/?#]+/?")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PROTOCOLS = ("http/1.1", "h2c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
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

    generator: str = "wrk"
    hosts: tuple[str, ...] = (LOCAL,)
    """Where the load comes from: `local`, or `ssh://user@host:port`; in sandbox mode from inside of it."""
    path: str = "/index.html"
    """On the server; in managed mode it may be a whole URL."""
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
        """Give the options that the generator's class takes; most take none."""
        given = {"command": self.command, "result": self.result, "script": self.script}
        return {name: value for name, value in given.items() if value}

    def describe(self) -> str:
        """Say the workload in one line."""
        kept = "keep-alive" if self.keepalive else "Connection: close"
        there = "" if self.hosts == (LOCAL,) else f" on {', '.join(self.hosts)}"
        return (
            f"{self.generator}{there}, {self.path}, {self.connections} connections, {kept}, {self.protocol}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One study file."""

    path: Path
    name: str
    servers: tuple[str, ...]
    space: tuple[str | Document, ...]
    """Names, paths and refinements, each of which knows its line."""
    target: Target
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
    """A name, or the import path of an Optuna sampler."""
    warm_start: tuple[Path, ...] = ()
    """Study files of earlier studies."""

    @property
    def folder(self) -> Path:
        """Where everything that belongs to the study is kept: nginx.yaml → nginx.study/."""
        return self.path.with_suffix(".study")

    @property
    def storage_url(self) -> str:
        """Give the Optuna storage URL."""
        if self.storage != "sqlite":
            return self.storage
        return sqlite_url(self.folder / "study.db")

    def definition(self, space: "Space") -> dict[str, str]:
        """Give all that makes two starts comparable, each part by its name; the budget is not among it."""
        load = self.load
        default = {name: str(value) for name, value in space.default().items()}
        return {
            "study": self.name,
            "servers": ", ".join(self.servers),
            "load": f"{load.describe()}, {load.threads} threads",
            "load.command": shlex.join(load.command),
            "load.result": str(load.result or ""),
            "load.script": load.script.name if load.script else "",
            "content": self.content,
            "objective": str(self.objective),
            "constraints": ", ".join(map(str, self.constraints)),
            **{f"parameter {each.name}": _show_range(each) for each in space.dimensions},
            **{f"default of {name}": value for name, value in sorted(default.items())},
        }


def _show_range(dimension: "Dimension") -> str:
    if dimension.kind == "categorical":
        return " | ".join(map(str, dimension.choices))
    scale = ", log" if dimension.log else ""
    return f"{dimension.low:g} to {dimension.high:g} in steps of {dimension.step or 0:g}{scale}"


def load_study(path: Path) -> Study:
    """Read a study file. Raises UsageError naming file, line, value and remedy."""
    content = _read(path, f"Write one with `tuner init SERVER -o {path}`")
    return _Reader(read_yaml(content, str(path)), path).study()


def load_values(path: Path) -> Mapping[str, Scalar]:
    """Read a file of parameter values (`name: value` lines) for a comparison. Raises UsageError."""
    content = _read(path, "Give default, winner, or the path of a YAML file of values")
    document = read_yaml(content, str(path))
    values: dict[str, Scalar] = {}
    for name, value in document.data.items():
        if not isinstance(value, str):
            raise problem(document.place((name,)), f"{quote(value)} is not one value", "Write `name: value`")
        values[name] = value
    return values


def _read(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise problem(str(path), "there is no such file", remedy) from error
    except OSError as error:
        raise problem(str(path), f"cannot be read ({error.strerror})", remedy) from error


class _Reader:
    """Takes a document apart, key by key."""

    def __init__(self, document: Document, path: Path) -> None:
        self._document = document
        self._path = path

    def study(self) -> Study:
        known = (
            "study", "servers", "space", "target", "load", "content", "objective", "constraints", "budget",
            "storage", "seed", "optimizer", "warm_start",
        )  # fmt: skip
        self._refuse_unknown((), known)
        for key in ("study", "servers", "space"):
            if key not in self._document.data:
                raise problem(str(self._path), f"the key {key!r} is missing", f"Add `{key}:`")
        name = self._text(("study",), "")
        if not NAME.fullmatch(name):
            raise self._wrong(("study",), f"{quote(name)} cannot be a name", "Use letters, digits, . _ and -")
        servers = self._texts(("servers",))
        if not servers or len(set(servers)) < len(servers):
            raise self._wrong(("servers",), f"{quote(servers)} is not a list of adapters", "Name each once")
        budget = self._budget()
        target = self._target()
        return Study(
            path=self._path,
            name=name,
            servers=servers,
            space=self._space(),
            target=target,
            load=self._load(target),
            content=self._text(("content",), "builtin"),
            objective=self._objective(),
            constraints=tuple(
                parse_constraint(text, self._where(("constraints", index)))
                for index, text in enumerate(self._texts(("constraints",), ("failure_rate <= 0.001",)))
            ),
            preset=budget[0],
            minutes=budget[1],
            trials=budget[2],
            storage=self._storage(),
            seed=self._number(("seed",), 1, int, low=0, high=2**31),
            optimizer=self._optimizer(),
            warm_start=tuple(self._path.parent / each for each in self._texts(("warm_start",))),
        )

    def _budget(self) -> tuple[str, float | None, int | None]:
        self._refuse_unknown(("budget",), ("preset", "minutes", "trials"))
        preset = self._choice(("budget", "preset"), "standard", tuple(PRESETS))
        minutes = self._number(("budget", "minutes"), None, float, low=0.1, high=7 * 24 * 60)
        trials = self._number(("budget", "trials"), None, int, low=1, high=100_000)
        return preset, minutes, trials

    def _target(self) -> Target:
        self._refuse_unknown(("target",), ("host", "mode", "watchdog_s"))
        return Target(
            host=self._text(("target", "host"), "local"),
            mode=self._choice(("target", "mode"), "sandbox", ("sandbox", "managed")),
            watchdog_s=self._number(("target", "watchdog_s"), 120.0, float, low=5, high=3600),
        )

    def _load(self, target: Target) -> LoadSettings:
        keys = (
            "generator", "host", "path", "connections", "keepalive", "threads", "protocol", "command",
            "result", "script", "token_directory",
        )  # fmt: skip
        self._refuse_unknown(("load",), keys)
        connections = self._number(("load", "connections"), 100, int, low=1, high=MOST_CONNECTIONS)
        threads = self._number(("load", "threads"), 1, int, low=1, high=256)
        if threads > connections:
            raise self._wrong(
                ("load", "threads"), f"{threads} threads for {connections} connections", "Use fewer threads"
            )
        hosts = self._load_hosts(target)
        if len(hosts) > connections:
            raise self._wrong(
                ("load", "host"), f"{len(hosts)} hosts for {connections} connections", "Use fewer hosts"
            )
        script = self._value(("load", "script"))
        return LoadSettings(
            generator=self._text(("load", "generator"), "wrk"),
            hosts=hosts,
            path=self._load_path(target),
            token_directory=self._token_directory(target),
            connections=connections,
            keepalive=self._truth(("load", "keepalive"), default=True),
            threads=threads,
            protocol=self._choice(("load", "protocol"), "http/1.1", PROTOCOLS),
            command=self._texts(("load", "command"), ()),
            result=self._mapping(("load", "result")),
            script=None if script is None else (self._path.parent / str(script)),
        )

    def _load_hosts(self, target: Target) -> tuple[str, ...]:
        keys = ("load", "host")
        given = self._value(keys)
        hosts = self._texts(keys) if isinstance(given, list) else (self._text(keys, LOCAL),)
        if not target.is_managed and hosts != (LOCAL,):
            raise self._wrong(
                keys,
                f"{quote(given)} cannot reach a sandbox, whose network is its own",
                "Leave it out, or write `target: {mode: managed}`",
            )
        for host in hosts:
            if host != LOCAL and not (HOST_URL.fullmatch(host) and host.isprintable()):
                raise self._wrong(keys, f"{quote(host)} is no host", "Write local, or ssh://user@host:port")
        if not hosts or len(set(hosts)) < len(hosts):
            raise self._wrong(keys, f"{quote(hosts)} is not a list of hosts", "Name each once")
        return hosts

    def _load_path(self, target: Target) -> str:
        keys = ("load", "path")
        path = self._text(keys, "/index.html")
        if target.is_managed and "://" in path:
            return parse_url(path, where=self._where(keys)).text
        if not path.startswith("/") or not path.isprintable() or " " in path:
            raise self._wrong(
                keys, f"{quote(path)} is not a path on the server", "Begin with /, without spaces"
            )
        return path

    def _token_directory(self, target: Target) -> PurePosixPath | None:
        keys = ("load", "token_directory")
        given = self._text(keys, "")
        if not given:
            return None
        path = PurePosixPath(given)
        if not target.is_managed or not path.is_absolute() or ".." in path.parts or not given.isprintable():
            raise self._wrong(
                keys,
                f"{quote(given)} is no document root on the target of a managed study",
                "Write its whole path, as /var/www/html",
            )
        return path

    def _space(self) -> tuple[str | Document, ...]:
        entries = self._value(("space",))
        if not isinstance(entries, list) or not entries:
            raise self._wrong(("space",), f"{quote(entries)} is not a list", "Write `space: [nginx]`")
        return tuple(
            entry if isinstance(entry, str) else self._document.below(("space", index))
            for index, entry in enumerate(entries)
        )

    def _objective(self) -> Objective:
        given = self._value(("objective",))
        texts = (
            self._texts(("objective",)) if isinstance(given, list) else (self._text(("objective",), GOODPUT),)
        )
        return parse_objective(texts, self._where(("objective",)))

    def _optimizer(self) -> str:
        name = self._text(("optimizer",), DEFAULT_OPTIMIZER)
        if ":" not in name and name not in OPTIMIZERS:
            raise self._wrong(("optimizer",), f"there is no {quote(name)}", suggest(name, OPTIMIZERS))
        if name == ONE_OBJECTIVE and self._objective().cost is not None:
            raise self._wrong(
                ("optimizer",), f"{quote(name)} knows one objective, and there are two", "Take another one"
            )
        return name

    def _storage(self) -> str:
        storage = self._text(("storage",), "sqlite")
        if storage != "sqlite" and "://" not in storage:
            wrong = f"{quote(show_url(storage))} is no storage"
            raise self._wrong(("storage",), wrong, "Write `sqlite`, or postgresql://…")
        return storage

    # Values by kind

    def _text(self, keys: tuple[str | int, ...], default: str) -> str:
        value = self._value(keys)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(keys, f"{quote(value)} is not a text", "Write one value")
        return str(value)

    def _texts(self, keys: tuple[str | int, ...], default: Sequence[str] = ()) -> tuple[str, ...]:
        value = self._value(keys)
        if value is None:
            return tuple(default)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(keys, f"{quote(value)} is not a list", "Write [first, second]")
        return tuple(str(each) for each in value)

    def _truth(self, keys: tuple[str | int, ...], *, default: bool) -> bool:
        value = self._value(keys)
        if value is None:
            return default
        truths = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if str(value).lower() not in truths:
            raise self._wrong(keys, f"{quote(value)} is neither true nor false", "Write true or false")
        return truths[str(value).lower()]

    def _choice(self, keys: tuple[str | int, ...], default: str, choices: Collection[str]) -> str:
        value = self._text(keys, default)
        if value not in choices:
            raise self._wrong(keys, f"there is no {quote(value)}", suggest(value, choices))
        return value

    def _number(
        self,
        keys: tuple[str | int, ...],
        default: Any,  # noqa: ANN401 - a number, or None
        kind: Callable[[str], Any],
        *,
        low: float,
        high: float,
    ) -> Any:  # noqa: ANN401 - int, float or the default
        value = self._value(keys)
        if value is None:
            return default
        try:
            number = kind(str(value))
        except ValueError:
            what = "whole number" if kind is int else "number"
            raise self._wrong(keys, f"{quote(value)} is not a {what}", f"Give {low:g} to {high:g}") from None
        if not low <= number <= high:
            raise self._wrong(keys, f"{number:g} is out of range", f"Give {low:g} to {high:g}")
        return number

    def _mapping(self, keys: tuple[str | int, ...]) -> Mapping[str, Any] | None:
        value = self._value(keys)
        if value is not None and not isinstance(value, Mapping):
            raise self._wrong(keys, f"{quote(value)} is not a mapping", "Write `key: value` lines")
        return value

    def _value(self, keys: tuple[str | int, ...]) -> Any:  # noqa: ANN401 - whatever the file holds
        here: Any = self._document.data
        for depth, key in enumerate(keys):
            if not isinstance(here, Mapping):
                raise self._wrong(keys[:depth], f"{quote(here)} is not a mapping", "Write `key: value` lines")
            here = here.get(str(key))
            if here is None or (isinstance(here, Plain) and here in {"", "~", "null"}):
                return None
        return here

    def _refuse_unknown(self, keys: tuple[str, ...], known: Collection[str]) -> None:
        here = self._mapping(keys) if keys else self._document.data
        for key in here or ():
            if key not in known:
                raise self._wrong((*keys, key), "this key is not known", suggest(key, known))

    def _where(self, keys: tuple[str | int, ...]) -> str:
        return str(self._document.place(keys))

    def _wrong(self, keys: tuple[str | int, ...], wrong: str, remedy: str) -> UsageError:
        return problem(self._document.place(keys), wrong, remedy)
