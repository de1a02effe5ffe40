"""Reads the study file. Every refusal names file, line, value and remedy.

`tuner.study.schema` says what each key may be; here stands what keys allow each other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tuner.errors import UsageError
from tuner.hosts.load_places import LOCAL
from tuner.hosts.url import Url, parse_url
from tuner.log import hide
from tuner.optimize.catalogue import ONE_OBJECTIVE
from tuner.ports import H2, HTTP1, RequestKind, Scalar
from tuner.shell_words import write_command
from tuner.space.file_format import validate
from tuner.space.problems import Refused, problem, quote, suggest
from tuner.space.yaml_text import LARGEST_FILE_BYTES, Document, read_yaml
from tuner.space.yaml_text import Path as Keys
from tuner.study.loads.builtin_loads import BUILTIN, BUILTIN_LOADS, INDEX, BuiltinLoad
from tuner.study.loads.mix import list_secrets, read_path, weigh
from tuner.study.objective import AT_RATE, GOODPUT, Objective, parse_constraint, parse_objective
from tuner.study.schema import (
    MODEL,
    CheckLoadEntry,
    LoadEntry,
    RequestEntry,
    ServerEntry,
    StudyFile,
    TargetSettings,
    is_host,
)
from tuner.study.server_options import COMMANDS, ServerOptions, read_templates
from tuner.study.settings import LoadSettings, NamedLoad, Study, Targets, name_check_load

EXPORTED = "settings"
"""Key of the values in an export as json, server by server."""
SSH_PORT = 22
SANDBOX = "Leave it out, or write `target: {mode: sandbox}`"
MANAGED = "Leave it out, or write `target: {mode: managed}`"
WHOLE_URL = "Write a whole URL: `path: https://HOST/…`"


def load_study(path: Path) -> Study:
    """Read a study file. Raises UsageError naming file, line, value and remedy."""
    content = _read_bytes(
        path, f"Write a study file with `{write_command('tuner', 'init', 'SERVER', '-o', path)}`"
    )
    begin = "Begin with `study:`, `servers:` and `space:`; `tuner init SERVER` writes a commented one"
    document = read_yaml(content, str(path), begin=begin)
    file = validate(StudyFile, document)
    with document.placing():
        study = _Reading(file=file, document=document, path=path).study()
    for load in study.sent_loads:
        for headers in (load.headers, *(each.headers for each in load.requests)):
            hide(list_secrets(headers))
    return study


def choose_target(settings: Study, host: str) -> Study:
    """Return a study with one of its hosts as its target; any host, where the file names no `targets:`.

    Raises UsageError where it is no host, or none of them.
    """
    if settings.targets is None:
        if not is_host(host):
            raise UsageError(f"--target: {quote(host)} is no host. Write local, or ssh://user@host:port.")
        return replace(settings, target=settings.target.model_copy(update={"host": host}))
    found = next((each for each in settings.targets.entries if each.host == host), None)
    if found is None:
        raise UsageError(
            f"--target: {quote(host)} is none of the `targets:` of {settings.path}. "
            f"{suggest(host, settings.targets.hosts)}."
        )
    return replace(settings, target=found)


def for_each_target(settings: Study) -> tuple[Study, ...]:
    """Return the study as the worker on each of its machines has it; as it is where there is one."""
    if settings.targets is None:
        return (settings,)
    return tuple(choose_target(settings, host) for host in settings.targets.hosts)


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
        raise problem(str(path), "the file does not exist", remedy) from error
    except OSError as error:
        raise problem(str(path), f"cannot be read ({error.strerror})", remedy) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A study file whose keys are right by themselves. Raises Refused where they contradict each other."""

    file: StudyFile
    document: Document
    path: Path

    @property
    def target(self) -> TargetSettings:
        return self.file.targets[0] if self.file.targets else self.file.target

    def study(self) -> Study:
        file, is_managed = self.file, self.target.is_managed
        if file.backend is not None and is_managed:
            raise Refused(
                "tuner starts an application only behind private servers",
                "Leave `backend:` out: installed servers keep theirs",
                at=("backend",),
            )
        targets = self._targets()
        loads = self._loads()
        if file.budget.window_s is not None and any(each.requests_total for each in (file.load, *file.loads)):
            raise Refused(
                "`window_s` and `requests_total` cannot be combined, because `requests_total` ends each "
                "window after a number of requests",
                "Leave one of the two out; `time_limit_s` limits windows of `requests_total` in time",
                at=("budget", "window_s"),
            )
        objective = parse_objective(file.objective, self._where("objective"))
        self._refuse_rate(objective)
        if file.optimizer in ONE_OBJECTIVE and objective.cost is not None:
            wrong = f"{quote(file.optimizer)} optimizes one objective, and the study has two"
            raise Refused(wrong, "Name another optimizer, or leave the cost out", at=("optimizer",))
        return Study(
            path=self.path,
            name=file.study,
            servers=self._servers(),
            backends={each.name: each.backend for each in file.servers if each.backend},
            options=self._options(),
            programs={each.name: each.program for each in file.servers if each.program},
            backend=file.backend,
            space=tuple(
                entry if isinstance(entry, str) else self.document.below(("space", index))
                for index, entry in enumerate(file.space)
            ),
            target=self.target,
            targets=targets,
            load=(load := loads[0].load if loads else self._load(file.load, ("load",))),
            loads=loads,
            across=file.across_loads,
            check_loads=self._check_loads(load),
            content=file.content,
            objective=objective,
            constraints=tuple(
                parse_constraint(text, self._where("constraints", index))
                for index, text in enumerate(file.constraints)
            ),
            preset=file.budget.preset,
            minutes=file.budget.minutes,
            trials=file.budget.trials,
            window_s=file.budget.window_s,
            warmup_s=file.budget.warmup_s,
            seed=file.seed,
            optimizer=file.optimizer,
            line_price=file.line_price,
            warm_start=tuple(self.path.parent / each for each in file.warm_start),
            title=file.title,
            source=file.source,
        )

    def _refuse_rate(self, objective: Objective) -> None:
        """Raise Refused for a rate whose objective it decides, and for an objective that needs a rate."""
        rates = [index for index, each in enumerate(self.file.loads) if each.rate is not None]
        if rates:
            wrong = "tuner compares several loads by their goodput, and a rate would fix the goodput"
            raise Refused(wrong, "Leave `rate:` out, or write one `load:`", at=("loads", rates[0], "rate"))
        at_rate = " or ".join(f"`objective: {each}`" for each in AT_RATE)
        if self.file.load.rate is not None and not objective.metric.is_at_rate:
            wrong = "at a fixed rate, all configurations that keep up have the same goodput"
            raise Refused(wrong, f"Write {at_rate}", at=("load", "rate"))
        if self.file.load.rate is None and objective.metric.is_at_rate:
            wrong = f"`{objective}` as the only objective needs a fixed rate, because it depends on goodput"
            remedy = f"Write `load: {{rate: 1000}}`, or `objective: [{GOODPUT}, {objective}]`"
            raise Refused(wrong, remedy, at=("objective",))

    def _where(self, *keys: str | int) -> str:
        return str(self.document.place(keys))

    def _servers(self) -> tuple[str, ...]:
        names = tuple(each.name for each in self.file.servers)
        if len(set(names)) < len(names):
            wrong = f"{', '.join(names)} is not a list of adapters"
            raise Refused(wrong, "Write `servers: [NAME]`, each once", at=("servers",))
        if self.target.is_managed and any(each.backend for each in self.file.servers):
            raise Refused(
                "`backend:` has no effect here, because installed servers pass requests on as their own "
                "configuration says",
                "Leave `backend:` out, or tune private instances: `target: {mode: sandbox}`",
                at=("servers",),
            )
        return names

    def _options(self) -> Mapping[str, ServerOptions]:
        """Return what is said of servers that the study describes itself, by name."""
        entries = enumerate(self.file.servers)
        options = {each.name: found for index, each in entries if (found := self._options_of(each, index))}
        if options and self.target.is_managed:
            raise Refused(
                "a study may bring templates and commands only for private instances",
                "Leave both out, or write `target: {mode: sandbox}`",
                at=("servers",),
            )
        return options

    def _options_of(self, entry: ServerEntry, index: int) -> ServerOptions | None:
        given = [key for key in COMMANDS if entry.gives(key)]
        if not given and not entry.gives("template"):
            return None
        keys = ("servers", index)
        with self.document.placing(*keys, "template"):
            templates = read_templates(entry.template, self.path.parent)
        return ServerOptions(
            folder=str(self.path.parent.resolve()),
            templates=templates,
            commands={key: getattr(entry, key) for key in given},
            places={key: self._where(*keys, key) for key in given},
        )

    def _targets(self) -> Targets | None:
        entries = self.file.targets
        if not entries:
            return None
        _refuse_twice([each.host for each in entries])
        for key in ("mode", "watchdog_s", "logs_mib"):
            values = list(dict.fromkeys(str(getattr(each, key)) for each in entries))
            if len(values) > 1:
                wrong = f"`{key}` differs between the hosts ({' and '.join(values)})"
                raise Refused(wrong, f"Give all hosts the same `{key}`", at=("targets",))
        return Targets(
            entries=entries, across=self.file.across, models_unlike=self.file.unlike_hosts == MODEL
        )

    def _loads(self) -> tuple[NamedLoad, ...]:
        entries = self.file.loads
        loads = tuple(
            NamedLoad(
                name=each.name or each.content,
                weight=each.weight,
                load=self._load(each, ("loads", index)),
            )
            for index, each in enumerate(entries)
        )
        names = [each.name for each in loads]
        if len(set(names)) < len(names):
            wrong = f"two loads have the same name ({', '.join(names)})"
            raise Refused(wrong, "Give each load a name of its own", at=("loads",))
        if loads and not sum(each.weight for each in loads):
            wrong = "all loads have weight 0, so no load counts"
            raise Refused(wrong, "Give at least one load a weight above 0", at=("loads",))
        for index, each in enumerate(loads):
            _refuse_other_tongue(each, loads[0], index)
        return loads

    def _load(self, entry: LoadEntry, keys: Keys) -> LoadSettings:
        with self.document.placing(*keys):
            builtin = self._builtin(entry)
            urls = self._urls(entry.requests, keys)
            mix = self._mix(entry.requests, entry.headers, keys) if builtin is None else builtin.requests
            first = builtin.path if builtin else mix[0].path if mix else INDEX
            page = self._page(entry, next((url.text for url in urls if url), first), keys)
            _refuse_other_origins(urls, page)
            self._refuse_private_page(entry, page)
            self._refuse_shared(entry, page)
            folder = self.path.parent
            return LoadSettings(
                generator=entry.generator,
                hosts=entry.host,
                path=page,
                requests=mix,
                content=entry.content,
                token_directory=self._token_directory(entry),
                connections=entry.connections,
                rate_rps=entry.rate_rps,
                requests_total=entry.requests_total,
                time_limit_s=entry.time_limit_s,
                timeout_s=entry.timeout_s,
                keepalive=entry.keepalive,
                threads=entry.threads,
                protocol=entry.protocol,
                tls=self._tls(entry, page),
                streams=entry.streams,
                accept_encoding=entry.accept_encoding,
                headers=entry.headers,
                body=entry.body,
                certificate=PurePosixPath((folder / entry.ca).resolve()) if entry.ca else None,
                verifies=entry.verify,
                command=entry.command,
                result=entry.result,
                script=folder / entry.script if entry.script else None,
            )

    def _check_loads(self, first: LoadSettings) -> tuple[NamedLoad, ...]:
        """Return the mixes of the robustness checks, each as the first load of the study would send it."""
        names = [each.name for each in self.file.check_loads]
        if len(set(names)) < len(names):
            wrong = f"two check loads have the same name ({', '.join(names)})"
            raise Refused(wrong, "Give each check load a name of its own", at=("check_loads",))
        return tuple(
            NamedLoad(
                name=name_check_load(each.name),
                weight=0.0,
                load=self._check_load(each, first, ("check_loads", index)),
            )
            for index, each in enumerate(self.file.check_loads)
        )

    def _check_load(self, entry: CheckLoadEntry, first: LoadSettings, keys: Keys) -> LoadSettings:
        with self.document.placing(*keys):
            mix = self._mix(entry.requests, first.headers, keys)
            page = first.path if "://" in first.path else mix[0].path
            _refuse_other_origins(self._urls(entry.requests, keys), page)
        # Requests of a mix have headers of their own.
        return replace(
            first, path=page, requests=mix, content="", accept_encoding="", rate_rps=None,
            connections=entry.connections or first.connections,
            keepalive=first.keepalive if entry.keepalive is None else entry.keepalive,
        )  # fmt: skip

    def _urls(self, requests: Sequence[RequestEntry], keys: Keys) -> list[Url | None]:
        return [
            parse_url(each.url, where=self._where(*keys, "requests", index, "url")) if each.url else None
            for index, each in enumerate(requests)
        ]

    def _mix(
        self, requests: Sequence[RequestEntry], shared: Mapping[str, str], keys: Keys
    ) -> tuple[RequestKind, ...]:
        """Return the requests of a mix; `shared` are headers of all of them."""
        kinds = []
        for index, each in enumerate(requests):
            with self.document.placing(*keys, "requests", index):
                kinds.append(each.as_kind(shared))
        with self.document.placing(*keys, "requests"):
            return weigh(kinds)

    def _builtin(self, entry: LoadEntry) -> BuiltinLoad | None:
        """Return the built-in content of a load, beside which nothing else may be served or asked for."""
        if not entry.content:
            return None
        if self.target.is_managed:
            raise Refused(
                "built-in content is for private instances; installed servers have pages of their own",
                "Write `path:` or `requests:` instead, or `target: {mode: sandbox}`",
                at=("content",),
            )
        for name in ("path", "requests", "script"):
            if entry.gives(name):
                wrong = f"`load.{name}:` and `load.content: {entry.content}` cannot be combined"
                raise Refused(wrong, "Leave one of the two out", at=(name,))
        with self.document.placing():
            if self.file.backend is not None:
                wrong = f"`backend:` and `load.content: {entry.content}` cannot be combined"
                raise Refused(wrong, "Leave one of the two out", at=("backend",))
            if self.file.content != BUILTIN:
                raise Refused(
                    f"`content:` and `load.content: {entry.content}` cannot be combined",
                    "Leave one of the two out; to request a page of a document root, write `load.path:`",
                    at=("content",),
                )
        return BUILTIN_LOADS[entry.content]

    def _page(self, entry: LoadEntry, default: str, keys: Keys) -> str:
        path = entry.path or default
        if self.target.is_managed and "://" in path:
            return parse_url(path, where=self._where(*keys, "path")).text
        with self.document.placing(*keys, "path"):
            if "://" in path:
                raise Refused(
                    f"{quote(path)} is a whole URL, and only managed studies request whole URLs",
                    "Write `target: {mode: managed}` to tune that server, or only the path for a private "
                    "instance",
                )
            return read_path(path)

    def _tls(self, entry: LoadEntry, page: str) -> bool:
        """Return whether private servers speak TLS: h2 says so by itself."""
        is_h2, is_managed = entry.protocol == H2, self.target.is_managed
        tls = entry.tls if entry.gives("tls") else is_h2 and not is_managed
        if is_managed:
            if tls:
                raise Refused(
                    "`tls:` has no effect here, because an installed server decides about TLS itself",
                    WHOLE_URL,
                    at=("tls",),
                )
            if is_h2 and not page.startswith("https://"):
                raise Refused(
                    f"h2 is HTTP/2 over TLS, and {page} is not an https:// URL", WHOLE_URL, at=("protocol",)
                )
        elif tls != is_h2 and entry.protocol != HTTP1:
            wrong = "`protocol: h2` is HTTP/2 over TLS" if is_h2 else "`protocol: h2c` is HTTP/2 without TLS"
            remedy = "Write `protocol: h2`" if tls else "Leave `tls: false` out, or write `protocol: h2c`"
            raise Refused(wrong, remedy, at=("tls",))
        return tls

    def _refuse_private_page(self, entry: LoadEntry, page: str) -> None:
        """Raise Refused for what asks for an installed server, or for its TLS, where there is none."""
        is_managed = self.target.is_managed
        if not is_managed and entry.host != (LOCAL,):
            wrong = f"{quote(', '.join(entry.host))} cannot reach a sandbox, which has a private network"
            raise Refused(wrong, MANAGED, at=("host",))
        for name in ("ca", "verify"):
            if entry.gives(name) and not is_managed:
                wrong = "private instances have their own certificate, and tuner always checks it"
                raise Refused(wrong, MANAGED, at=(name,))
            if entry.gives(name) and not page.startswith("https://"):
                raise Refused(
                    f"{page} is requested without TLS, so no certificate is checked", WHOLE_URL, at=(name,)
                )

    def _refuse_shared(self, entry: LoadEntry, page: str) -> None:
        """Raise Refused where the load of one installed service would go to, or come from, another host."""
        hosts = [each.host for each in self.file.targets]
        if not hosts or not self.target.is_managed:
            return
        if "://" in page:
            raise Refused(
                f"{quote(page)} is the address of one host, and the study has several",
                "Write only the path, such as /index.html, which is requested from each host",
                at=("path",),
            )
        if both := [host for host in entry.host if host in hosts]:
            raise Refused(
                f"{both[0]} is one of the `targets:`; a target that sends load to other hosts disturbs its "
                "own measurements",
                "Name a load host that is not among the `targets:`",
                at=("host",),
            )

    def _token_directory(self, entry: LoadEntry) -> PurePosixPath | None:
        given = entry.token_directory
        if not given:
            return None
        path = PurePosixPath(given)
        is_usable = path.is_absolute() and ".." not in path.parts and given.isprintable()
        if not self.target.is_managed or not is_usable:
            raise Refused(
                f"{quote(given)} is no document root on the target of a managed study",
                "Write its whole path, as /var/www/html",
                at=("token_directory",),
            )
        return path


def _refuse_other_tongue(load: NamedLoad, first: NamedLoad, index: int) -> None:
    """Raise Refused where loads differ in what a private server has to speak: it speaks one way to all."""
    for key in ("tls", "protocol", "accept_encoding"):
        own, others = getattr(load.load, key), getattr(first.load, key)
        if own != others:
            raise Refused(
                f"{own!r} differs from {others!r} of the load {first.name}; a server has one `{key}` for all "
                "loads",
                "Make both the same, or tune each load in a study of its own",
                at=("loads", index, key),
            )
    if load.load.hosts != first.load.hosts:
        own, others = ", ".join(load.load.hosts), ", ".join(first.load.hosts)
        wrong = f"{own} differs from {others}, which sends the load {first.name}"
        raise Refused(wrong, "Send all loads from the same hosts", at=("loads", index, "host"))


def _refuse_other_origins(urls: list[Url | None], page: str) -> None:
    """Raise Refused for a `url:` that another address than that of the load would have to answer.

    Every request goes over the same connections: its virtual host is named by its header.
    """
    for index, url in enumerate(urls):
        if url is None:
            continue
        keys = ("requests", index, "url")
        if "://" not in page:
            wrong = f"`url:` needs a whole URL in `load.path:` too, which is {page}"
            raise Refused(
                wrong, "Write a whole URL in `load.path:`, or `path:` in place of this `url:`", at=keys
            )
        first = parse_url(page)
        if (url.scheme, url.port) != (first.scheme, first.port):
            wrong = f"{url.text} has another scheme or port than {page}, to which all connections go"
            raise Refused(wrong, "Put this request into a load of its own, under `loads:`", at=keys)


def _refuse_twice(hosts: list[str]) -> None:
    """Raise Refused where two entries lead to one machine by their names."""
    places = [_place(host) for host in hosts]
    twice = next((place for place, count in Counter(places).items() if count > 1), None)
    if twice is not None:
        first, second, *_ = (host for host, place in zip(hosts, places, strict=True) if place == twice)
        wrong = f"{quote(first)} and {quote(second)} are one host"
        raise Refused(wrong, "Name each host once", at=("targets",))


def _place(host: str) -> tuple[str, int]:
    """Return where a host is found, whoever logs in there."""
    if host == LOCAL:
        return LOCAL, 0
    url = urlsplit(host)
    try:
        return (url.hostname or host).lower(), url.port or SSH_PORT
    except ValueError:  # no number: its adapter says what is wrong with it
        return host, SSH_PORT
