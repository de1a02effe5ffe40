"""Reads the study file. Every refusal names file, line, value and remedy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tuner.errors import UsageError
from tuner.hosts.url import parse_url
from tuner.optimize.catalogue import DEFAULT_OPTIMIZER, ONE_OBJECTIVE, OPTIMIZERS
from tuner.ports import H2, H2C, HTTP1, Body, Scalar
from tuner.space import available_spaces, is_path, suggest_space
from tuner.space.problems import problem, quote, suggest
from tuner.space.yaml_text import LARGEST_FILE_BYTES, Document, read_yaml
from tuner.study.backend import read_backend
from tuner.study.databases.storage_url import show_url
from tuner.study.fields import Fields, Keys
from tuner.study.loads.builtin_loads import BUILTIN, read_builtin_load
from tuner.study.loads.load_bounds import LEAST_REQUESTS, MOST_CONNECTIONS, MOST_REQUESTS, MOST_WINDOW_S
from tuner.study.loads.mix import (
    read_body,
    read_first_url,
    read_load_headers,
    read_mix,
    read_path,
    refuse_other_origins,
    refuse_packed,
)
from tuner.study.loads.several_loads import read_across, read_entries
from tuner.study.many_targets import OF_TARGETS, read_targets, refuse_shared_load
from tuner.study.objective import GOODPUT, Objective, parse_constraint, parse_objective
from tuner.study.presets import MOST_MINUTES, MOST_TRIALS, PRESETS
from tuner.study.server_options import KEYS as OPTIONS
from tuner.study.server_options import ServerOptions, read_server_options
from tuner.study.settings import (
    DEFAULT_GENERATOR,
    LOCAL,
    LoadSettings,
    NamedLoad,
    Study,
    Targets,
    TargetSettings,
)

HOST_URL = re.compile(r"ssh://[^\s/?#]+/?")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NEEDED_KEYS = ("study", "servers", "space")
KEYS = (
    *NEEDED_KEYS, "target", "targets", *OF_TARGETS, "load", "loads", "across_loads", "content", "objective",
    "constraints", "budget", "storage", "backend", "seed", "optimizer", "line_price", "warm_start", "title",
    "source",
)  # fmt: skip
SERVER_KEYS = ("name", "backend", *OPTIONS)
TARGET_KEYS = ("host", "mode", "watchdog_s", "logs_mib")
LOAD_KEYS = (
    "generator", "host", "path", "connections", "keepalive", "threads", "protocol", "command", "result",
    "script", "token_directory", "requests", "content", "requests_total", "time_limit_s", "tls", "streams",
    "accept_encoding", "headers", "body", "ca", "verify",
)  # fmt: skip
BUDGET_KEYS = ("preset", "minutes", "trials")
ENCODINGS = ("gzip",)
EXPORTED = "settings"
"""Key of the values in an export as json, server by server."""
MOST_LOGS_MIB = 2**20
MOST_STREAMS = 100
"""What every server has to allow for (RFC 9113, section 6.5.2: no less than 100 is recommended)."""


def load_study(path: Path) -> Study:
    """Read a study file. Raises UsageError naming file, line, value and remedy."""
    content = _read_bytes(path, f"Write one with `tuner init SERVER -o {path}`")
    begin = "Begin with `study:`, `servers:` and `space:`; `tuner init SERVER` writes a commented one"
    return _read_study(Fields(read_yaml(content, str(path), begin=begin)), path)


def choose_target(settings: Study, host: str) -> Study:
    """Return a study with another host as its target, for a worker there.

    Raises:
        UsageError: it is no host, or the study is for one host only.
    """
    if settings.targets is not None:
        return _choose_among(settings, settings.targets, host)
    if not _is_host(host):
        raise UsageError(f"--target: {quote(host)} is no host. Write local, or ssh://user@host:port.")
    if not settings.is_shared and host != settings.target.host:
        raise UsageError(
            f"--target: {settings.path} is a study of one host, {settings.target.host}, as its storage is a "
            "file. Several hosts take `storage: postgresql://…`."
        )
    return replace(settings, target=replace(settings.target, host=host))


def _choose_among(settings: Study, targets: Targets, host: str) -> Study:
    found = next((each for each in targets.entries if each.host == host), None)
    if found is None:
        raise UsageError(
            f"--target: {quote(host)} is none of the `targets:` of {settings.path}. "
            f"{suggest(host, targets.hosts)}."
        )
    return replace(settings, target=found, is_worker=True)


def for_each_target(settings: Study) -> tuple[Study, ...]:
    """Return the study as the worker on each of its machines has it; as it is where there is one."""
    if settings.targets is None or settings.is_worker:
        return (settings,)
    return tuple(choose_target(settings, host) for host in settings.targets.hosts)


def _is_host(text: str) -> bool:
    return text == LOCAL or bool(HOST_URL.fullmatch(text) and text.isprintable())


def load_values(path: Path) -> Mapping[str, Scalar]:
    """Read a file of parameter values, `name: value` lines or an export as json. Raises UsageError."""
    content = _read_bytes(path, "Give default, winner, a preset's name, or the path of a YAML file of values")
    document = read_yaml(content, str(path), begin="Write `name: value` lines")
    exported = document.data.get(EXPORTED)
    if not isinstance(exported, Mapping):
        return _read_values(document)
    groups = [_read_values(document.below((EXPORTED, server))) for server in exported]
    return {name: value for group in groups for name, value in group.items()}


def _read_values(document: Document) -> dict[str, Scalar]:
    values: dict[str, Scalar] = {}
    for name, value in document.data.items():
        if not isinstance(value, str):
            raise problem(document.place((name,)), f"{quote(value)} is not one value", "Write `name: value`")
        values[name] = value
    return values


def is_study(path: Path) -> bool:
    """Return whether a file is a study file, as far as its keys say. Raises UsageError."""
    begin = "Write `name: value` lines, or a study file"
    return {"study", "servers"} <= read_yaml(_read_bytes(path, begin), str(path), begin=begin).data.keys()


def _read_bytes(path: Path, remedy: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE_BYTES + 1)  # one byte more is refused as too large
    except FileNotFoundError as error:
        raise problem(str(path), "there is no such file", remedy) from error
    except OSError as error:
        raise problem(str(path), f"cannot be read ({error.strerror})", remedy) from error


def _read_study(fields: Fields, path: Path) -> Study:
    fields.refuse_unknown((), KEYS)
    for key in NEEDED_KEYS:
        if key not in fields.document.data:
            raise problem(str(path), f"the key {key!r} is missing", f"Add `{key}:`")
    name = fields.text(("study",), "")
    if not NAME.fullmatch(name):
        raise fields.wrong(("study",), f"{quote(name)} cannot be a name", "Use letters, digits, . _ and -")
    targets = read_targets(fields, _read_target)
    target = targets.entries[0] if targets else _read_target(fields, ("target",))
    servers, backends = _read_servers(fields, target)
    options = _read_options(fields, servers, path, is_managed=target.is_managed)
    budget = _read_budget(fields)
    loads = tuple(
        NamedLoad(name=each.name, weight=each.weight, load=_read_load(each.fields, path, target))
        for each in read_entries(fields)
    )
    _refuse_other_tongues(fields, loads)
    load = loads[0].load if loads else _read_load(fields, path, target)
    for each in (named.load for named in loads) if loads else (load,):
        if targets is not None:
            refuse_shared_load(fields, targets, each.path, each.hosts)
    return Study(
        path=path,
        name=name,
        servers=servers,
        backends=backends,
        options=options,
        backend=read_backend(fields, is_managed=target.is_managed),
        space=_read_space(fields),
        target=target,
        targets=targets,
        load=load,
        loads=loads,
        across=read_across(fields),
        content=fields.text(("content",), BUILTIN),
        objective=_read_objective(fields),
        constraints=tuple(
            parse_constraint(text, fields.where(("constraints", index)))
            for index, text in enumerate(fields.texts(("constraints",), ("failure_rate <= default",)))
        ),
        preset=budget[0],
        minutes=budget[1],
        trials=budget[2],
        storage=_read_storage(fields),
        seed=fields.number(("seed",), 1, int, low=0, high=2**31),
        optimizer=_read_optimizer(fields),
        line_price=fields.number(("line_price",), 0.01, float, low=0, high=1),
        warm_start=tuple(path.parent / each for each in fields.texts(("warm_start",))),
        title=fields.text(("title",), ""),
        source=fields.text(("source",), ""),
    )


def _read_servers(fields: Fields, target: TargetSettings) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Read the names of the servers, and to whom they pass requests where the study says so."""
    given = fields.value(("servers",))
    entries = [_read_server(fields, index) for index in range(len(given))] if isinstance(given, list) else []
    servers = tuple(name for name, _ in entries)
    if not servers or len(set(servers)) < len(servers):
        raise fields.wrong(
            ("servers",), f"{quote(given)} is not a list of adapters", "Write `servers: [NAME]`, each once"
        )
    backends = {name: backend for name, backend in entries if backend}
    if backends and target.is_managed:
        raise fields.wrong(
            ("servers",),
            "installed servers pass requests on as their own files say",
            "Leave `backend:` out, or tune private instances with `target: {mode: sandbox}`",
        )
    return servers, backends


def _read_server(fields: Fields, index: int) -> tuple[str, str]:
    """Read one entry of `servers:`, a name or `{name: NAME, backend: NAME}`; an empty text for no backend."""
    entry = fields.value(("servers",))[index]
    if isinstance(entry, str):
        return str(entry), ""
    if not isinstance(entry, Mapping):
        raise fields.wrong(("servers", index), f"{quote(entry)} is no server", "Write its adapter's name")
    own = Fields(fields.document.below(("servers", index)))
    own.refuse_unknown((), SERVER_KEYS)
    name, backend = own.text(("name",), ""), own.text(("backend",), "")
    if not name or backend == name:
        raise own.wrong(
            (), f"{quote(dict(entry))} is no server with its backend", "Write {name: A, backend: B}"
        )
    return name, backend


def _read_options(
    fields: Fields, servers: tuple[str, ...], path: Path, *, is_managed: bool
) -> Mapping[str, ServerOptions]:
    """Read what is said of servers that the study describes itself, by name."""
    entries = {
        name: Fields(fields.document.below(("servers", index)))
        for index, name in enumerate(servers)
        if isinstance(fields.value(("servers",))[index], Mapping)
    }
    found = {name: read_server_options(own, path.parent) for name, own in entries.items()}
    options = {name: each for name, each in found.items() if each is not None}
    if options and is_managed:
        raise fields.wrong(
            ("servers",),
            "templates and commands of the study's own are for private instances",
            "Leave them out, or write `target: {mode: sandbox}`",
        )
    return options


def _read_budget(fields: Fields) -> tuple[str, float | None, int | None]:
    fields.refuse_unknown(("budget",), BUDGET_KEYS)
    preset = fields.choice(("budget", "preset"), "standard", tuple(PRESETS))
    minutes = fields.number(("budget", "minutes"), None, float, low=0.1, high=MOST_MINUTES)
    trials = fields.number(("budget", "trials"), None, int, low=1, high=MOST_TRIALS)
    return preset, minutes, trials


def _refuse_other_tongues(fields: Fields, loads: Sequence[NamedLoad]) -> None:
    """Raise UsageError where loads differ in what a private server has to speak: it speaks one way to all."""
    for index, each in enumerate(loads):
        for key in ("tls", "protocol", "accept_encoding"):
            own, first = getattr(each.load, key), getattr(loads[0].load, key)
            if own != first:
                raise fields.wrong(
                    ("loads", index, key),
                    f"{own!r}, where {loads[0].name} has {first!r}: a server speaks one way to all loads",
                    "Make them the same, or tune each in a study of its own",
                )
        load_hosts = loads[0].load.hosts
        if each.load.hosts != load_hosts:
            raise fields.wrong(
                ("loads", index, "host"),
                f"{', '.join(each.load.hosts)}, where {loads[0].name} comes from {', '.join(load_hosts)}",
                "Let all loads come from the same hosts",
            )


def _read_target(fields: Fields, keys: Keys) -> TargetSettings:
    """Read the target that a mapping describes."""
    fields.refuse_unknown(keys, TARGET_KEYS)
    return TargetSettings(
        host=fields.text((*keys, "host"), "local"),
        mode=fields.choice((*keys, "mode"), "sandbox", ("sandbox", "managed")),
        watchdog_s=fields.number((*keys, "watchdog_s"), 120.0, float, low=5, high=3600),
        logs_mib=fields.number((*keys, "logs_mib"), None, int, low=1, high=MOST_LOGS_MIB),
    )


def _read_load(fields: Fields, path: Path, target: TargetSettings) -> LoadSettings:
    fields.refuse_unknown(("load",), LOAD_KEYS)
    connections = fields.number(("load", "connections"), 100, int, low=1, high=MOST_CONNECTIONS)
    threads = fields.number(("load", "threads"), 1, int, low=1, high=256)
    if threads > connections:
        raise fields.wrong(
            ("load", "threads"), f"{threads} threads for {connections} connections", "Use fewer threads"
        )
    hosts = _read_load_hosts(fields, target)
    if len(hosts) > connections:
        raise fields.wrong(
            ("load", "host"), f"{len(hosts)} hosts for {connections} connections", "Use fewer hosts"
        )
    script = fields.value(("load", "script"))
    builtin = read_builtin_load(fields, is_managed=target.is_managed)
    mix = read_mix(fields) if builtin is None else builtin.requests
    first = builtin.path if builtin else mix[0].path if mix else "/index.html"
    page = _read_load_path(fields, target, read_first_url(fields) or first)
    refuse_other_origins(fields, page)
    protocol = fields.choice(("load", "protocol"), HTTP1, (HTTP1, H2, H2C))
    encoding = _read_encoding(fields, has_mix=bool(mix))
    certificate, verifies = _read_verification(fields, path, target, page)
    return LoadSettings(
        generator=fields.text(("load", "generator"), DEFAULT_GENERATOR),
        hosts=hosts,
        path=page,
        requests=mix,
        content="" if builtin is None else builtin.name,
        token_directory=_read_token_directory(fields, target),
        connections=connections,
        requests_total=_read_requests_total(fields, connections),
        time_limit_s=fields.number(("load", "time_limit_s"), 60.0, float, low=1, high=MOST_WINDOW_S),
        keepalive=fields.truth(("load", "keepalive"), default=True),
        threads=threads,
        protocol=protocol,
        tls=_read_tls(fields, target, protocol, page),
        streams=_read_streams(fields, protocol),
        accept_encoding=encoding,
        headers=read_load_headers(fields),
        body=_read_load_body(fields, encoding, has_mix=bool(mix)),
        certificate=certificate,
        verifies=verifies,
        command=fields.texts(("load", "command"), ()),
        result=fields.mapping(("load", "result")),
        script=None if script is None else (path.parent / str(script)),
    )


def _read_requests_total(fields: Fields, connections: int) -> int | None:
    """Read after how many requests a window ends, at least one for each connection; None for none."""
    keys = ("load", "requests_total")
    if fields.value(keys) is None and fields.value(("load", "time_limit_s")) is not None:
        raise fields.wrong(
            ("load", "time_limit_s"),
            "it bounds windows that end after a number of requests, and there is none",
            "Write `requests_total:`, or leave it out",
        )
    least = max(LEAST_REQUESTS, connections)
    return fields.number(keys, None, int, low=least, high=MOST_REQUESTS)  # type: ignore[no-any-return]


def _read_tls(fields: Fields, target: TargetSettings, protocol: str, page: str) -> bool:
    """Read whether private servers speak TLS: H2 says so by itself."""
    keys = ("load", "tls")
    tls = fields.truth(keys, default=protocol == H2 and not target.is_managed)
    if target.is_managed:
        if tls:
            raise fields.wrong(
                keys, "an installed server speaks TLS where it does", "Write its URL: path: https://HOST/…"
            )
        if protocol == H2 and not page.startswith("https://"):
            raise fields.wrong(
                ("load", "protocol"), "h2 is HTTP/2 over TLS", "Write its URL: path: https://HOST/…"
            )
        return False
    if tls != (protocol == H2) and protocol != HTTP1:
        wrong = "h2 is HTTP/2 over TLS" if protocol == H2 else "h2c is HTTP/2 in the clear"
        remedy = "Write `protocol: h2`" if tls else "Leave it out, or write `protocol: h2c`"
        raise fields.wrong(keys, wrong, remedy)
    return tls


def _read_streams(fields: Fields, protocol: str) -> int:
    keys = ("load", "streams")
    streams: int = fields.number(keys, 1, int, low=1, high=MOST_STREAMS)
    if streams > 1 and protocol == HTTP1:
        raise fields.wrong(
            keys,
            f"{streams} requests at once on one connection take HTTP/2",
            "Write `protocol: h2` or `h2c`, or leave it out",
        )
    return streams


def _read_encoding(fields: Fields, *, has_mix: bool) -> str:
    keys = ("load", "accept_encoding")
    if fields.value(keys) is None:
        return ""
    if has_mix:
        raise fields.wrong(
            keys, "each request of a mix has headers of its own", "Write `headers:` among `requests:`"
        )
    return fields.choice(keys, ENCODINGS[0], ENCODINGS)


def _read_load_body(fields: Fields, encoding: str, *, has_mix: bool) -> Body:
    """Read how responses to the path are judged; scripts and commands judge them on their own."""
    keys = ("load", "body")
    body = read_body(fields, keys)
    if fields.value(keys) is None:
        return body
    if has_mix:
        raise fields.wrong(keys, "each request of a mix has a body of its own", "Write it among `requests:`")
    for other in ("script", "command"):
        if fields.value(("load", other)) is not None:
            raise fields.wrong(keys, f"your {other} judges the responses", "Leave it out")
    refuse_packed(fields, keys, body, encoding)
    return body


def _read_verification(
    fields: Fields, path: Path, target: TargetSettings, page: str
) -> tuple[PurePosixPath | None, bool]:
    """Read by what the certificate of an installed server is checked, and whether it is."""
    ca, verifies = fields.text(("load", "ca"), ""), fields.truth(("load", "verify"), default=True)
    for key in ("ca", "verify"):
        if fields.value(("load", key)) is None:
            continue
        if not target.is_managed:
            raise fields.wrong(
                ("load", key), "private instances have a certificate of their own, which is checked",
                "Leave it out, or write `target: {mode: managed}`",
            )  # fmt: skip
        if not page.startswith("https://"):
            raise fields.wrong(
                ("load", key), f"{page} is asked for without TLS", "Write its URL: path: https://HOST/…"
            )
    if ca and not verifies:
        raise fields.wrong(("load", "ca"), "`ca:` beside `verify: false`", "Leave one of them out")
    return PurePosixPath((path.parent / ca).resolve()) if ca else None, verifies


def _read_load_hosts(fields: Fields, target: TargetSettings) -> tuple[str, ...]:
    keys = ("load", "host")
    given = fields.value(keys)
    hosts = fields.texts(keys) if isinstance(given, list) else (fields.text(keys, LOCAL),)
    if not target.is_managed and hosts != (LOCAL,):
        raise fields.wrong(
            keys,
            f"{quote(given)} cannot reach a sandbox, whose network is its own",
            "Leave it out, or write `target: {mode: managed}`",
        )
    for host in hosts:
        if not _is_host(host):
            raise fields.wrong(keys, f"{quote(host)} is no host", "Write local, or ssh://user@host:port")
    if not hosts or len(set(hosts)) < len(hosts):
        raise fields.wrong(keys, f"{quote(hosts)} is not a list of hosts", "Name each once")
    return hosts


def _read_load_path(fields: Fields, target: TargetSettings, default: str) -> str:
    keys = ("load", "path")
    path = fields.text(keys, default)
    if target.is_managed and "://" in path:
        return parse_url(path, where=fields.where(keys)).text
    if "://" in path:
        raise fields.wrong(
            keys,
            f"{quote(path)} is the address of an installed server",
            "Write `target: {mode: managed}` to tune that, or the path alone for a private instance",
        )
    return read_path(fields, keys, default)


def _read_token_directory(fields: Fields, target: TargetSettings) -> PurePosixPath | None:
    keys = ("load", "token_directory")
    given = fields.text(keys, "")
    if not given:
        return None
    path = PurePosixPath(given)
    if not target.is_managed or not path.is_absolute() or ".." in path.parts or not given.isprintable():
        raise fields.wrong(
            keys,
            f"{quote(given)} is no document root on the target of a managed study",
            "Write its whole path, as /var/www/html",
        )
    return path


def _read_space(fields: Fields) -> tuple[str | Document, ...]:
    entries = fields.value(("space",))
    if not isinstance(entries, list) or not entries:
        raise fields.wrong(
            ("space",),
            f"{quote(entries)} is not a list",
            "Write `space: [NAME]`; `tuner spaces` lists the names",
        )
    for index, entry in enumerate(entries):
        if isinstance(entry, str) and not is_path(entry) and entry not in available_spaces():
            raise fields.wrong(
                ("space", index), f"there is no space {quote(str(entry))}", suggest_space(entry)
            )
    return tuple(
        entry if isinstance(entry, str) else fields.document.below(("space", index))
        for index, entry in enumerate(entries)
    )


def _read_objective(fields: Fields) -> Objective:
    given = fields.value(("objective",))
    texts = (
        fields.texts(("objective",)) if isinstance(given, list) else (fields.text(("objective",), GOODPUT),)
    )
    return parse_objective(texts, fields.where(("objective",)))


def _read_optimizer(fields: Fields) -> str:
    name = fields.text(("optimizer",), DEFAULT_OPTIMIZER)
    if ":" not in name and name not in OPTIMIZERS:
        raise fields.wrong(("optimizer",), f"there is no {quote(name)}", suggest(name, OPTIMIZERS))
    if name in ONE_OBJECTIVE and _read_objective(fields).cost is not None:
        raise fields.wrong(
            ("optimizer",), f"{quote(name)} knows one objective, and there are two", "Take another one"
        )
    return name


def _read_storage(fields: Fields) -> str:
    storage = fields.text(("storage",), "sqlite")
    if storage != "sqlite" and "://" not in storage:
        wrong = f"{quote(show_url(storage))} is no storage"
        raise fields.wrong(("storage",), wrong, "Write `sqlite`, postgresql://…, or grpc://HOST:PORT")
    return storage
