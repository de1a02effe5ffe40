"""Finds adapters and foreign search spaces by name. Both are registered as entry points.

Built-in adapters are registered like foreign ones; built-in spaces are the files in search_spaces/.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from importlib.resources import files
from inspect import getdoc
from typing import cast

from tuner.errors import UsageError
from tuner.ports import (
    HTTP,
    Backend,
    Host,
    InstalledServer,
    LoadGenerator,
    LoggingServer,
    PrivateServer,
    Server,
)

DISTRIBUTION = "servertuner"
SPACES = "tuner.spaces"
"""Group of the entry points that name search spaces."""


class AdapterKind(StrEnum):
    """Which port an adapter fits."""

    HOST = "host"
    SERVER = "server"
    LOAD_GENERATOR = "load generator"
    BACKEND = "backend"

    @property
    def group(self) -> str:
        """Name of the entry point group that holds such adapters."""
        return f"tuner.{self.value.rpartition(' ')[0] or self.value}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One adapter as it is registered."""

    name: str
    kind: AdapterKind
    summary: str
    """First line of its docstring, or why it cannot be loaded."""
    package: str
    """The Debian package of the program it knows; empty when it needs none or cannot be loaded."""
    target: str
    """Where it is: `module:Class`."""
    distribution: str
    """Which installed distribution brings it, with version."""


def make_host(name: str) -> Host:
    """Make a host: `local`, or by the adapter that its URL names (ssh://user@host).

    Raises UsageError for an unknown adapter, or for an URL that the adapter refuses.
    """
    scheme, is_url, _ = name.partition("://")
    if not is_url and scheme not in adapter_names(AdapterKind.HOST):
        raise UsageError(f"host: {name!r} is no host. Write local, or ssh://user@host:port.")
    make = _load(_find(AdapterKind.HOST, scheme))
    try:
        return cast("Host", make(name) if is_url else make())
    except TypeError as error:
        raise UsageError(
            f"host: {name!r} is no usable host: {error}. Write local, or ssh://user@host:port."
        ) from error


def make_server(name: str, **options: object) -> Server:
    """Make the server adapter of that name with the options that its class takes; most take none.

    Raises UsageError for an unknown name, or for options that it does not take.
    """
    return cast(
        "Server", _make(AdapterKind.SERVER, name, options, key="servers", remedy=("Leave these options out."))
    )


def denied_settings(server: str) -> tuple[str, ...]:
    """Return the patterns of settings that the adapter of a server denies; none where there is no adapter."""
    if server not in adapter_names(AdapterKind.SERVER):
        return ()
    adapter = make_server(server)
    try:
        return adapter.denied
    except AttributeError as error:
        raise UsageError(
            f"server {server!r}: its adapter does not say which settings no search space may tune. Give the "
            'class `denied = ("user", …)`, or `denied = ()` if the server has no such settings.'
        ) from error


def make_private_server(name: str, **options: object) -> PrivateServer:
    """Make the adapter of a server that can be started privately. Raises UsageError for one that cannot."""
    server = make_server(name, **options)
    if isinstance(server, PrivateServer):
        return server
    raise UsageError(
        f"servers: {name} is tuned as an installed service only; tuner cannot start a private instance of "
        f"{name}. Tune the installed service: write `mode: managed` under `target:`."
    )


def make_installed_server(name: str, **options: object) -> InstalledServer:
    """Make the adapter of a server that can be changed where it is. Raises UsageError for one that cannot."""
    server = make_server(name, **options)
    if isinstance(server, InstalledServer):
        return server
    raise UsageError(f"servers: {name} is tuned as a private instance only. Write `mode: sandbox`.")


def make_logging_servers() -> tuple[LoggingServer, ...]:
    """Make the adapters of all servers whose access logs can be read."""
    servers = (make_server(name) for name in adapter_names(AdapterKind.SERVER))
    return tuple(each for each in servers if isinstance(each, LoggingServer))


def make_backend(name: str) -> Backend:
    """Make the application of that name. Raises UsageError for an unknown one."""
    return cast("Backend", _load(_find(AdapterKind.BACKEND, name))())


def make_load_generator(name: str, **options: object) -> LoadGenerator:
    """Make the load generator adapter of that name with the options that its class takes.

    Raises UsageError for an unknown name, or for options that it does not take.
    """
    generator = _make(AdapterKind.LOAD_GENERATOR, name, options, key="load.generator", remedy="Correct them.")
    return cast("LoadGenerator", generator)


def make_rate_generator() -> LoadGenerator | None:
    """Make the first load generator that says of itself `logs_at_rate`; None when there is none.

    It keeps a rate over kept connections and logs every response, so that response times can be compared.
    """
    for point in sorted(_points(AdapterKind.LOAD_GENERATOR), key=lambda point: point.name):
        with suppress(UsageError):
            if getattr(_load(point), "logs_at_rate", False):
                return make_load_generator(point.name)
    return None


def load_generator_speaks(name: str) -> str:
    """Return the protocol that a load generator says of itself that it `speaks`; HTTP where it says none.

    Raises UsageError for an unknown one.
    """
    return str(getattr(_load(_find(AdapterKind.LOAD_GENERATOR, name)), "speaks", HTTP))


def generators_of(protocol: str) -> tuple[str, ...]:
    """Return the names of the load generators that speak a protocol."""
    names = adapter_names(AdapterKind.LOAD_GENERATOR)
    return tuple(name for name in names if load_generator_speaks(name) == protocol)


def generators_at_rate() -> tuple[str, ...]:
    """Return the names of the load generators that count response times from when a request was due."""
    kind = AdapterKind.LOAD_GENERATOR
    return tuple(
        name for name in adapter_names(kind) if hasattr(_load(_find(kind, name)), "most_rps_per_connection")
    )


def adapter_names(kind: AdapterKind) -> tuple[str, ...]:
    """Return the names of all adapters of a kind. Raises UsageError when tuner is not installed."""
    return tuple(sorted({point.name for point in _points(kind)}))


def list_adapters() -> tuple[Adapter, ...]:
    """Describe every adapter, kind by kind; one that cannot be loaded says why and hides no other."""
    return tuple(
        _describe(kind, point)
        for kind in AdapterKind
        for point in sorted(_points(kind), key=lambda point: (point.name, point.value))
    )


def foreign_spaces() -> tuple[EntryPoint, ...]:
    """Return the spaces that other distributions register: `NAME = "package"`, which holds NAME.yaml."""
    points = {(point.name, point.value): point for point in _registered(SPACES, tuple(sys.path))}
    return tuple(points.values())


def read_foreign_space(point: EntryPoint, *, most_bytes: int) -> bytes:
    """Return the first bytes of a space's file. Raises UsageError when it cannot be read."""
    try:
        with files(point.value).joinpath(f"{point.name}.yaml").open("rb") as file:
            return file.read(most_bytes)
    except (ImportError, SyntaxError, TypeError, ValueError, OSError) as error:  # TypeError: it is no package
        raise UsageError(
            f"space {point.name!r}: {point.name}.yaml in the package {point.value} ({origin(point)}) "
            f"cannot be read: {error}. Install that distribution again, or remove it."
        ) from error


@lru_cache(maxsize=len(AdapterKind) + 1)
def _registered(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:  # noqa: ARG001 - searched
    """Return what all packages register; read once, as their files are many."""
    return tuple(entry_points(group=group))


def _points(kind: AdapterKind) -> tuple[EntryPoint, ...]:
    found = _registered(kind.group, tuple(sys.path))
    if found:
        return found
    try:
        distribution(DISTRIBUTION)
    except PackageNotFoundError as error:
        raise UsageError(
            f"adapters: {DISTRIBUTION} is not installed (its metadata is missing), so no {kind.value} "
            "adapter can be found. In a checkout run `make setup`, or `pip install -e .`."
        ) from error
    raise UsageError(
        f"adapters: {DISTRIBUTION} is installed, but its metadata names no {kind.value}: the installed "
        "package is from another version. Run `make setup`, or install the package again."
    )


def _find(kind: AdapterKind, name: str) -> EntryPoint:
    points = {point.value: point for point in _points(kind) if point.name == name}
    if len(points) == 1:
        return next(iter(points.values()))
    if points:
        claims = " and ".join(f"{point.value} ({origin(point)})" for point in points.values())
        raise UsageError(
            f"{kind.value}: the name {name!r} is registered twice, by {claims}. Uninstall one of these "
            "packages."
        )
    there = adapter_names(kind)
    near = get_close_matches(name, there, n=1) or _find_by_title(kind, name)
    meant = f" Did you mean {near[0]}?" if near else ""
    is_other = kind is AdapterKind.SERVER and not near
    own = " For a server without an adapter, begin with: tuner init command" if is_other else ""
    raise UsageError(f"{kind.value}: there is no {name!r}.{meant} Use one of: {', '.join(there)}.{own}")


def _find_by_title(kind: AdapterKind, name: str) -> list[str]:
    """Return the adapters that have a word in their title: httpd is Apache."""
    described = (_describe(kind, point) for point in sorted(_points(kind), key=lambda each: each.name))
    return [each.name for each in described if name.lower() in each.summary.lower().rstrip(".").split()]


def _load(point: EntryPoint) -> Callable[..., object]:
    try:
        return cast("Callable[..., object]", point.load())
    except (ImportError, AttributeError, SyntaxError) as error:
        raise UsageError(
            f"adapters: {point.name} ({point.value}, {origin(point)}) cannot be loaded: {error}. "
            "Install that distribution again, or remove it."
        ) from error


def _make(kind: AdapterKind, name: str, options: Mapping[str, object], *, key: str, remedy: str) -> object:
    """Make an adapter with options that its class takes; `key` and `remedy` are of the study file."""
    make = _load(_find(kind, name))
    try:
        return make(**options)
    except TypeError as error:
        told = ", ".join(options) or "none"
        raise UsageError(
            f"{key}: {name} does not accept the options given ({told}): {error}. {remedy}"
        ) from error


def _describe(kind: AdapterKind, point: EntryPoint) -> Adapter:
    package = ""
    try:
        loaded = _load(point)
    except UsageError as error:
        summary = str(error)
    else:
        summary = (getdoc(loaded) or "").partition("\n")[0]
        package = str(getattr(loaded, "package", ""))
    return Adapter(
        name=point.name,
        kind=kind,
        summary=summary,
        package=package,
        target=point.value,
        distribution=origin(point),
    )


def origin(point: EntryPoint) -> str:
    """Return which distribution registers an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown distribution"
