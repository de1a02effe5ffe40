"""The file format of a study: every key with its type, default, bounds, sentence and example.

The reader, its messages, the JSON Schema for editors and the reference page of the site are made from it.
`tuner schema > search_spaces/study.schema.json` writes the published schema again.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from tuner import plugins
from tuner.hosts.load_places import LOCAL
from tuner.hosts.url import parse_url
from tuner.optimize.catalogue import DEFAULT_OPTIMIZER, OPTIMIZERS
from tuner.ports import H2, H2C, HTTP, HTTP1, WEBSOCKET, Body, BodyCheck, RequestKind
from tuner.records.blend import Across, AcrossHosts
from tuner.space import available_spaces, is_path, suggest_space
from tuner.space.file_format import Flag, make_schema, one_of, read_as
from tuner.space.problems import Refused, quote, suggest
from tuner.space.schema import SpaceFile
from tuner.study.backend import BackendSettings, require_port
from tuner.study.keys import (
    TEXT,
    Command,
    Entry,
    OneOrMore,
    Suggest,
    Text,
    Texts,
    key,
    list_of,
    of_form,
    one_or_more,
    read_text,
)
from tuner.study.loads.builtin_loads import BUILTIN, BUILTIN_LOADS
from tuner.study.loads.load_bounds import (
    LEAST_REQUESTS,
    MOST_CONNECTIONS,
    MOST_RATE_RPS,
    MOST_REQUESTS,
    MOST_WINDOW_S,
)
from tuner.study.loads.mix import (
    BODIES,
    CONTAINS,
    METHODS,
    MOST_BYTES,
    MOST_KINDS,
    MOST_TEXT_LETTERS,
    SHA256,
    join_headers,
    read_body,
    read_headers,
    read_load_headers,
    read_path,
    refuse_packed,
)
from tuner.study.loads.rate import SCHEMA, Rate, read_rate
from tuner.study.objective import AT_RATE, COSTS, GOODPUT, METRICS
from tuner.study.presets import MOST_MINUTES, MOST_SET_S, MOST_TRIALS, PRESETS

SQLITE = "sqlite"
"""The only kind of storage."""
DEFAULT_GENERATOR = "wrk"
"""Of a study that names none."""
HOST_URL = re.compile(r"ssh://[^\s/?#]+/?")
HOST = re.compile(f"({LOCAL}|{HOST_URL.pattern})")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PROGRAM_PATH = re.compile(r"/[A-Za-z0-9._+/-]+")
LOAD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
ENCODINGS = ("gzip",)
LEAST_LOADS, MOST_LOADS = 2, 12
LEAST_TARGETS, MOST_TARGETS = 2, 64
REFUSE, MODEL = "refuse", "model"
OF_TARGETS = ("across", "unlike_hosts")
"""Keys that say something of several hosts only."""
MOST_LOGS_MIB = 2**20
MOST_STREAMS = 100
"""What every server has to allow for (RFC 9113, section 6.5.2: no less than 100 is recommended)."""

_UNIT = "%|[A-Za-zµ]+"
_BOUND = rf"^\s*({'|'.join(METRICS)})\s*<=\s*([-+.0-9eE]+|default)\s*({_UNIT})?(\s*unlike\s+default)?\s*$"
_OBJECTIVE = {"enum": [GOODPUT, *AT_RATE]}
_OBJECTIVES = {
    "type": "array",
    "items": {"enum": [GOODPUT, *(f"minimize {metric}" for metric in COSTS)]},
    "contains": {"enum": [GOODPUT]},
    "uniqueItems": True,
    "maxItems": 2,
}
_TEXT_IN_BODY = {
    "type": "object",
    "properties": {CONTAINS: {"type": "string", "minLength": 1, "maxLength": MOST_TEXT_LETTERS}},
    "required": [CONTAINS],
    "additionalProperties": False,
}
_HEADERS = {"type": "object", "additionalProperties": TEXT}
_HOST = {"type": "string", "pattern": f"^{HOST.pattern}$"}
_PATH = {"type": "string", "pattern": r"^/\S*$"}
_PAGE = {"type": "string", "pattern": r"^(/|https?://)\S*$"}


def is_host(text: str) -> bool:
    """Return whether a text names a host: local, or ssh://user@host:port."""
    return bool(HOST.fullmatch(text) and text.isprintable())


def _read_hosts(given: object) -> tuple[str, ...]:
    hosts = tuple(map(read_text, given)) if isinstance(given, list) else (read_text(given),)
    for host in hosts:
        if not is_host(host):
            raise Refused(f"{quote(host)} is no host", "Write local, or ssh://user@host:port")
    if not hosts or len(set(hosts)) < len(hosts):
        raise Refused(f"{quote(hosts)} is not a list of different hosts", "Name each host once")
    return hosts


def _read_space(given: object) -> tuple[str | Mapping[str, Any], ...]:
    if not isinstance(given, list) or not given:
        raise Refused(
            f"{quote(given)} is not a list", "Write `space: [NAME]`; `tuner spaces` lists the names"
        )
    for index, entry in enumerate(given):
        if isinstance(entry, str) and not is_path(entry) and entry not in available_spaces():
            raise Refused(f"there is no search space {quote(str(entry))}", suggest_space(entry), at=(index,))
    return tuple(given)


def _read_storage(given: object) -> str:
    """Refuse what is no file: one process writes a study. An address may hold a password."""
    if read_text(given) != SQLITE:
        raise Refused(
            "tuner stores a study only in a file in its folder",
            "Leave `storage:` out. To measure on several hosts, name them in `targets:`",
        )
    return SQLITE


def _read_content(given: object) -> str:
    name = read_text(given)
    if name not in BUILTIN_LOADS:
        raise Refused(f"there is no built-in content {quote(name)}", suggest(name, BUILTIN_LOADS))
    return name


def _read_optimizer(given: object) -> str:
    name = read_text(given)
    if ":" not in name and name not in OPTIMIZERS:
        raise Refused(f"there is no optimizer {quote(name)}", suggest(name, OPTIMIZERS))
    return name


def _by_key(name: str, wrong: tuple[str, str], given: object) -> object:
    """Return an entry as a mapping, where its only key may be left out."""
    if isinstance(given, str):
        return {name: str(given).strip()}
    if not isinstance(given, Mapping):
        raise Refused(f"{quote(given)} {wrong[0]}", wrong[1])
    return given


def _read_backend(given: object) -> BackendSettings:
    if isinstance(given, str):
        return BackendSettings(name=str(given))
    return BackendSettings(**BackendEntry.model_validate(given).model_dump())


Server = Annotated[
    str, BeforeValidator(read_text), Suggest(partial(plugins.adapter_names, plugins.AdapterKind.SERVER))
]
Generator = Annotated[
    str,
    BeforeValidator(read_text),
    Suggest(partial(plugins.adapter_names, plugins.AdapterKind.LOAD_GENERATOR)),
]
Application = Annotated[str, Suggest(partial(plugins.adapter_names, plugins.AdapterKind.BACKEND))]
SpaceName = Annotated[str, Suggest(available_spaces)]
SitePath = Annotated[str, *read_as(read_path, _PATH)]
Headers = Annotated[Mapping[str, str], *read_as(read_headers, _HEADERS)]
LoadHeaders = Annotated[Mapping[str, str], *read_as(read_load_headers, _HEADERS)]
BodyOf = Annotated[Body, *read_as(read_body, {"anyOf": [{"enum": list(BODIES)}, _TEXT_IN_BODY]})]


class ServerEntry(Entry):
    """A server with the one behind it, or one that the study describes itself."""

    name: Server = key("Adapter of the server; `tuner adapters` lists them.", "nginx")
    backend: Text = key("Server of this study to which this one passes requests.", "php-fpm", "")
    program: Annotated[
        str, *of_form(PROGRAM_PATH, "is no path of a program", "Write the whole path, from the / on")
    ] = key(
        "Path of the server's program, if tuner does not find the program by itself.",
        "/usr/local/nginx/sbin/nginx",
        "",
    )
    template: OneOrMore = key(
        "Files from which the configuration is made; paths are relative to the study file.", "web.conf.j2", ()
    )
    check: Command = key(
        "Command that checks the finished files before each trial.", ["web", "-t", "{directory}"], ()
    )
    start: Command = key("Command that starts the server in the foreground.", ["web", "-p", "{port}"], ())
    stop: Command = key("Command that asks the server to end.", ["web", "stop"], ())
    read_back: Command = key(
        "Command that prints one line NAME VALUE for each setting that is active.", ["web", "show"], ()
    )

    @model_validator(mode="after")
    def _refuse_itself(self) -> Self:
        if self.backend == self.name:
            wrong = f"{quote(self.name)} is named as its own backend"
            raise Refused(wrong, "Name another server: {name: A, backend: B}")
        return self


class TargetSettings(Entry):
    """A machine that is tuned."""

    host: Text = key("local, or ssh://user@host:port.", "ssh://deploy@web1", LOCAL)
    mode: Literal["sandbox", "managed"] = key(
        "sandbox tunes a private instance; managed tunes the installed service and restores it.",
        "managed",
        "sandbox",
    )
    watchdog_s: float = key(
        "Managed: the target restores itself after this many seconds without a sign from tuner.",
        60, 120.0, ge=5, le=3600,
    )  # fmt: skip
    logs_mib: int | None = key(
        "Managed: most MiB of logs that one run may write to a disk. Default: a tenth of its free space, at "
        "least 1024. `tuner check` says how fast the logs grow.",
        4096, None, ge=1, le=MOST_LOGS_MIB,
    )  # fmt: skip

    @property
    def is_managed(self) -> bool:
        return self.mode == "managed"


class TargetsEntry(TargetSettings):
    """One of several machines."""

    host: Text = key("local, or ssh://user@host:port.", "ssh://root@web1")


class RequestEntry(Entry):
    """One kind of request of a mix, with its correct response."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["path"]}, {"required": ["url"]}]})

    path: SitePath = key("Path that is requested; begins with /.", "/cart", "")
    url: Text = key(
        "Managed: a whole URL in place of the path; its host becomes the header Host.",
        "https://img.shop.test/a.jpg",
        "",
    )
    method: Annotated[str, *one_of(*METHODS)] = key("HTTP method.", "POST", "GET")
    headers: Headers = key("Headers by name; they replace those of the load.", {"Accept": "image/webp"}, {})
    status: int = key("Status of a correct response.", 404, 200, ge=200, le=599)
    bytes: int | None = key(
        "Length of a correct body in bytes. Default: learned in each trial.",
        615,
        None,
        ge=0,
        le=MOST_BYTES,
    )
    sha256: Annotated[str, *of_form(SHA256, "is no SHA-256", "Write what sha256sum prints")] = key(
        "SHA-256 of a correct body; checked once in each trial.",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "",
    )
    body: BodyOf = key("How the body of a response is judged.", {"contains": "</html>"}, Body)
    weight: float = key("Weight of this request, relative to the others of the mix.", 3, 1.0, ge=0, le=1e9)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.path and not self.url:
            raise Refused("this request has neither `path:` nor `url:`", "Write one of the two")
        if self.path and self.url:
            raise Refused("`url:` and `path:` cannot be combined", "Leave one of the two out", at=("url",))
        check = self.body.check
        if check not in {BodyCheck.LEARNED, BodyCheck.LENGTH, BodyCheck.CHECKSUM}:
            for name in ("bytes", "sha256"):
                if self.gives(name):
                    wrong = f"`{name}:` and `body: {check}` cannot be combined"
                    raise Refused(wrong, "Leave one of the two out", at=(name,))
        return self

    def as_kind(self, shared: Mapping[str, str]) -> RequestKind:
        """Return the request as it is sent. Raises Refused where its body cannot be judged.

        Args:
            shared: headers of every request, in whose place its own come.
        """
        url = parse_url(self.url) if self.url else None
        own = join_headers({} if url is None else {"Host": url.authority}, self.headers)
        headers = join_headers(shared, own)
        accepted = {name.lower(): value for name, value in headers.items()}.get("accept-encoding", "")
        refuse_packed(self.body, accepted)
        return RequestKind(
            path=self.path if url is None else url.rest, method=self.method, headers=headers,
            status=self.status, body_bytes=self.bytes, sha256=self.sha256, body=self.body, weight=self.weight,
        )  # fmt: skip


class LoadEntry(Entry):
    """Requests, and the load generator that sends them."""

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {"time_limit_s": ["requests_total"]}})

    generator: Generator = key("Load generator; `tuner adapters` lists them.", "h2load", DEFAULT_GENERATOR)
    host: Annotated[
        tuple[str, ...],
        *read_as(_read_hosts, one_or_more(_HOST)),
    ] = key(
        "Host that sends the load: local, ssh://user@host:port, or a list of hosts.",
        "ssh://load1",
        (LOCAL,),
        json_schema_extra={"default": LOCAL},
    )
    path: Annotated[str, BeforeValidator(read_text), WithJsonSchema(_PAGE)] = key(
        "Path that is requested; for an installed service also a whole URL. Default: /index.html, or the "
        "first page of `requests:` or `content:`.",
        "/cart", "",
    )  # fmt: skip
    content: Annotated[str, *read_as(_read_content, {"enum": list(BUILTIN_LOADS)})] = key(
        "Built-in content that is requested in place of a path; `tuner loads` lists it.", "images", ""
    )
    connections: int = key("Connections at once.", 400, 100, ge=1, le=MOST_CONNECTIONS)
    rate: Annotated[Rate | None, *read_as(read_rate, SCHEMA)] = key(
        "Requests per second, each sent when it is due; `peak` and `2 × peak` refer to `peak_rps:`. Default: "
        "as fast as responses come.",
        3500, None,
    )  # fmt: skip
    peak_rps: float | None = key(
        "Requests per second in the busiest minute of a log, for `rate: peak`.",
        1750, None, ge=0.001, le=MOST_RATE_RPS,
    )  # fmt: skip
    keepalive: Flag = key("false opens a new connection for each request.", False, True)  # noqa: FBT003
    threads: int = key("Threads of the load generator.", 2, 1, ge=1, le=256)
    protocol: Annotated[str, *one_of(HTTP1, H2, H2C)] = key(
        "h2 is HTTP/2 over TLS, h2c is HTTP/2 in the clear.", H2, HTTP1
    )
    tls: Flag = key(
        "Private instances: HTTP/1.1 over TLS. Default: true with `protocol: h2`, otherwise false.",
        True,  # noqa: FBT003 - an example
        False,  # noqa: FBT003
    )
    streams: int = key("Requests at once on each connection, over HTTP/2.", 10, 1, ge=1, le=MOST_STREAMS)
    accept_encoding: Annotated[str, *one_of(*ENCODINGS)] = key("Compression that clients accept.", "gzip", "")
    headers: LoadHeaders = key(
        "Headers of every request, by name; values that may be secret are not shown.",
        {"Cookie": "session=1"}, {},
    )  # fmt: skip
    body: BodyOf = key(
        "How the body of a response is judged. Default: learned from several responses.",
        "checksum", Body,
    )  # fmt: skip
    ca: Text = key(
        "Managed: CA file on the target that verifies the server's certificate.", "/etc/ssl/own-ca.pem", ""
    )
    verify: Flag = key("Managed: false accepts any certificate.", False, True)  # noqa: FBT003
    requests: Annotated[
        tuple[RequestEntry, ...],
        *list_of("requests", "Write `- {path: /index.html, weight: 1}` lines", most=MOST_KINDS),
    ] = key(
        "A mix of requests, each sent in proportion to its weight.",
        [{"path": "/", "weight": 9}, {"path": "/cart"}],
        (),
    )
    requests_total: int | None = key(
        "Each window ends after this many requests. Default: windows last `budget: window_s`.",
        10_000, None, ge=LEAST_REQUESTS, le=MOST_REQUESTS,
    )  # fmt: skip
    time_limit_s: float = key(
        "With `requests_total`: requests that are unanswered after this many seconds count as failed.",
        30, 60.0, ge=1, le=MOST_WINDOW_S,
    )  # fmt: skip
    timeout_s: float | None = key(
        "Clients without a response for this many seconds count as failed. Default: derived from the usual "
        "response time.",
        4, None, ge=1, le=MOST_WINDOW_S,
    )  # fmt: skip
    command: Command = key(
        "For `generator: command`: program and arguments.", ["load", "{url}", "{connections}"], ()
    )
    result: Annotated[Mapping[str, Any] | None, WithJsonSchema({"type": "object"})] = key(
        "For `generator: command`: how its output is read.", {"json": {"correct": "/ok"}}, None
    )
    script: Text = key("Path of a script, for a load generator that takes scripts.", "load.js", "")
    token_directory: Annotated[str, BeforeValidator(read_text), WithJsonSchema(_PATH)] = key(
        "Managed: document root on the target, if `path:` names an address of another host.",
        "/var/www/html",
        "",
    )

    @property
    def rate_rps(self) -> float | None:
        """Return the requests per second that are due; None for a load as fast as responses come."""
        if self.rate is None:
            return None
        return self.rate.number * ((self.peak_rps or 0.0) if self.rate.is_of_peak else 1.0)

    @model_validator(mode="after")
    def _fit_connections(self) -> Self:
        if self.threads > self.connections:
            wrong = f"{self.threads} threads for {self.connections} connections"
            raise Refused(wrong, "Use fewer threads", at=("threads",))
        if len(self.host) > self.connections:
            wrong = f"{len(self.host)} hosts for {self.connections} connections"
            raise Refused(wrong, "Use fewer hosts", at=("host",))
        if self.requests_total is None and self.gives("time_limit_s"):
            raise Refused(
                "`time_limit_s:` needs `requests_total:`, which is missing",
                "Write `requests_total:`, or leave `time_limit_s:` out",
                at=("time_limit_s",),
            )
        if self.requests_total is not None and self.requests_total < self.connections:
            wrong = f"{self.requests_total} requests are too few for {self.connections} connections"
            raise Refused(wrong, f"Give {self.connections} to {MOST_REQUESTS}", at=("requests_total",))
        if self.rate is not None and self.requests_total is not None:
            wrong = "`rate:` and `requests_total:` cannot be combined"
            raise Refused(wrong, "Leave one of them out", at=("rate",))
        if self.rate is not None and self.rate.is_of_peak and self.peak_rps is None:
            wrong = "the peak of the log is not known"
            raise Refused(wrong, "Write `peak_rps:`, or a number of requests per second", at=("rate",))
        if self.streams > 1 and self.protocol == HTTP1:
            raise Refused(
                f"{self.streams} requests at once on one connection need HTTP/2",
                "Write `protocol: h2` or `h2c`, or leave `streams:` out",
                at=("streams",),
            )
        return self

    @model_validator(mode="after")
    def _fit_responses(self) -> Self:
        judges = [name for name in ("script", "command") if self.gives(name)]
        if self.requests and self.accept_encoding:
            wrong = "each entry of `requests:` has headers of its own"
            raise Refused(
                wrong,
                "Write `headers: {Accept-Encoding: gzip}` in each entry instead",
                at=("accept_encoding",),
            )
        if self.gives("body") and self.requests:
            wrong = "each entry of `requests:` has a `body:` of its own"
            raise Refused(wrong, "Write `body:` in each entry instead", at=("body",))
        if self.gives("body") and judges:
            raise Refused(f"your {judges[0]} judges the responses", "Leave `body:` out", at=("body",))
        refuse_packed(self.body, self.accept_encoding)
        if self.ca and not self.verify:
            raise Refused(
                "`ca:` and `verify: false` cannot be combined", "Leave one of the two out", at=("ca",)
            )
        return self


class NamedLoadEntry(LoadEntry):
    """One of several loads."""

    name: Annotated[
        str, *of_form(LOAD_NAME, "is no name of a load", "Name it with letters, digits, . _ and -")
    ] = key("Name of this load in results. Default: the name of its `content:`.", "api", "")
    weight: float = key("Weight of this load, relative to the others.", 2, 1.0, ge=0, le=1e6)

    @model_validator(mode="after")
    def _require_name(self) -> Self:
        if not self.name and not self.content:
            wrong = "this load has neither `name:` nor `content:`"
            raise Refused(wrong, "Name the load with letters, digits, . _ and -", at=("name",))
        return self


class CheckLoadEntry(Entry):
    """A mix of requests on which nothing is tuned, sent like the load of the study."""

    name: Annotated[
        str, *of_form(LOAD_NAME, "is no name of a load", "Name it with letters, digits, . _ and -")
    ] = key("Name of this mix in results.", "yesterday.log")
    requests: Annotated[
        tuple[RequestEntry, ...],
        *list_of("requests", "Write `- {path: /index.html, weight: 1}` lines", most=MOST_KINDS),
    ] = key(
        "A mix of requests, each sent in proportion to its weight.",
        [{"path": "/", "weight": 9}, {"path": "/cart"}],
    )
    connections: int | None = key(
        "Connections at once. Default: those of the load of the study.",
        20, None, ge=1, le=MOST_CONNECTIONS,
    )  # fmt: skip
    keepalive: Flag | None = key(
        "false opens a new connection for each request. Default: as the load of the study.",
        False, None,  # noqa: FBT003 - an example
    )  # fmt: skip


class BackendEntry(Entry):
    """An application of your own, which is started behind the servers."""

    command: Command = key(
        "Program and arguments; tuner fills in {port} and {folder}, the folder of the study file.",
        ["node", "{folder}/shop.js", "{port}"],
    )
    port: int | None = key(
        "Port on which the application listens, if the command has no {port}.", 3000, None, ge=1, le=65535
    )
    ready: SitePath = key(
        "Path that the application answers with status 200 when it is ready.", "/health", ""
    )
    protocol: Annotated[str, *one_of(HTTP, WEBSOCKET)] = key(
        "Protocol that the application speaks.", WEBSOCKET, HTTP
    )

    @model_validator(mode="after")
    def _require_port(self) -> Self:
        require_port(self.command, self.port)
        return self


class BudgetEntry(Entry):
    """How long a run takes."""

    preset: Annotated[str, *one_of(*PRESETS)] = key(
        "; ".join(f"{name}: {plan.minutes:g} minutes" for name, plan in PRESETS.items()) + ".",
        "quick", "standard",
    )  # fmt: skip
    minutes: float | None = key(
        "Wall time of the whole run. Default: that of the preset.", 30, None, ge=0.1, le=MOST_MINUTES
    )
    trials: int | None = key(
        "Largest number of configurations to try. Default: that of the preset.",
        40,
        None,
        ge=1,
        le=MOST_TRIALS,
    )
    window_s: float | None = key(
        "Seconds of each measured window. Default: 1 (quick) or 5, more for slow applications and many "
        "connections.",
        3, None, ge=1, le=MOST_SET_S,
    )  # fmt: skip
    warmup_s: float | None = key(
        "Seconds of load before the first window. Default: 1 (quick) or 5 to 15, more for slow "
        "applications and many connections.",
        10, None, ge=1, le=MOST_SET_S,
    )  # fmt: skip


class StudyFile(Entry):
    """A study: servers, settings, load and budget."""

    model_config = ConfigDict(
        json_schema_extra={
            "not": {"anyOf": [{"required": ["load", "loads"]}, {"required": ["target", "targets"]}]},
            "dependentRequired": {
                "across_loads": ["loads"],
                **{name: ["targets"] for name in OF_TARGETS},
            },
        }
    )

    study: Annotated[str, *of_form(NAME, "cannot be a name", "Use letters, digits, . _ and -")] = key(
        "Name of the study: letters, digits, . _ and -.", "nginx-static"
    )
    title: Text = key("The question of the study, in one line.", "How many workers are enough?", "")
    source: Text = key("Source of that question.", "An article, 2015", "")
    servers: Annotated[
        tuple[
            Annotated[
                ServerEntry,
                BeforeValidator(
                    partial(_by_key, "name", ("is no server", "Write the name of its adapter")),
                    json_schema_input_type=Server | ServerEntry,
                ),
            ],
            ...,
        ],
        *list_of("adapters", "Write `servers: [NAME]`, each once"),
    ] = key(
        "Adapters, in the order in which requests pass through them; `tuner adapters` lists them.", ["nginx"]
    )
    space: Annotated[
        tuple[str | Mapping[str, Any], ...],
        PlainValidator(
            _read_space,
            json_schema_input_type=Annotated[list[SpaceName | SpaceFile], Field(min_length=1)],
        ),
    ] = key(
        "Search spaces: names (`tuner spaces`), paths and refinements; later entries refine earlier ones.",
        ["nginx", {"only": ["worker_processes", "sendfile"]}],
    )
    target: TargetSettings = key(
        "The machine that is tuned.", {"host": "ssh://deploy@web1", "mode": "managed"}, TargetSettings
    )
    targets: Annotated[
        tuple[
            Annotated[
                TargetsEntry,
                BeforeValidator(
                    partial(_by_key, "host", ("is no host", "Write ssh://user@host:port")),
                    json_schema_input_type=Annotated[
                        str, WithJsonSchema({**TEXT, "pattern": f"^{HOST.pattern}$"})
                    ]
                    | TargetsEntry,
                ),
            ],
            ...,
        ],
        *list_of(
            "hosts", "Write `targets: [ssh://root@web1, ssh://root@web2]`, or one `target:`",
            least=LEAST_TARGETS, most=MOST_TARGETS,
        ),
    ] = key(
        "Several machines in place of `target:`; one winner is tuned for all of them.",
        ["ssh://root@web1", "ssh://root@web2"], (),
    )  # fmt: skip
    across: Annotated[AcrossHosts, WithJsonSchema({"enum": list(AcrossHosts)})] = key(
        "How the gains on several machines are combined: the worst, or the mean.",
        AcrossHosts.MEAN,
        AcrossHosts.WORST,
    )
    unlike_hosts: Annotated[str, *one_of(REFUSE, MODEL)] = key(
        "Machines of different hardware: refuse rejects them; model gives each its own baseline level.",
        MODEL,
        REFUSE,
    )
    backend: Annotated[
        BackendSettings | None,
        PlainValidator(_read_backend, json_schema_input_type=Application | BackendEntry),
    ] = key("Application that is started behind the servers.", "websocket-echo", None)
    load: LoadEntry = key(
        "Load that is sent to the servers.", {"path": "/cart", "connections": 400}, LoadEntry
    )
    loads: Annotated[
        tuple[NamedLoadEntry, ...],
        *list_of(
            "loads", "Write `- {name: pages, path: /index.html, weight: 2}` lines, or one `load:`",
            least=LEAST_LOADS, most=MOST_LOADS,
        ),
    ] = key(
        "Several loads, in place of `load:`; each trial is measured under all of them.",
        [{"content": "images", "weight": 2}, {"name": "api", "path": "/tiny.txt"}], (),
    )  # fmt: skip
    across_loads: Annotated[Across, WithJsonSchema({"enum": list(Across)})] = key(
        "How the gains under several loads are combined: the worst, or the weighted mean.",
        Across.WORST,
        Across.WEIGHTED,
    )
    check_loads: Annotated[
        tuple[CheckLoadEntry, ...],
        *list_of("check loads", "Write `- {name: yesterday, requests: […]}` lines", most=MOST_LOADS),
    ] = key(
        "Mixes of requests for the robustness checks: nothing is tuned on them.",
        [{"name": "yesterday.log", "requests": [{"path": "/"}, {"path": "/cart"}]}], (),
    )  # fmt: skip
    content: Text = key("builtin, or the path of a document root to serve.", "/srv/www", BUILTIN)
    objective: Annotated[OneOrMore, WithJsonSchema({"anyOf": [_OBJECTIVE, _OBJECTIVES]})] = key(
        "Goodput, alone or against one cost: [maximize …, minimize …]. With `load: rate`, what is minimized "
        "at that rate.",
        [GOODPUT, f"minimize {COSTS[1]}"], (GOODPUT,), json_schema_extra={"default": GOODPUT},
    )  # fmt: skip
    constraints: Annotated[
        Texts, WithJsonSchema({"type": "array", "items": {"type": "string", "pattern": _BOUND}})
    ] = key(
        "Limits: METRIC <= NUMBER with or without a unit, or METRIC <= default (no worse than the baseline).",
        ["failure_rate <= 0.1 %", "latency_p99_ms <= 20 ms"], ("failure_rate <= default",),
    )  # fmt: skip
    budget: BudgetEntry = key("How long a run may take.", {"preset": "quick"}, BudgetEntry)
    storage: Annotated[str, *read_as(_read_storage, {"const": SQLITE})] = key(
        "sqlite stores the study in a file in its folder.", SQLITE, SQLITE
    )
    seed: int = key("Random seed.", 7, 1, ge=0, le=2**31)
    optimizer: Annotated[
        str,
        *read_as(
            _read_optimizer, {"anyOf": [{"enum": list(OPTIMIZERS)}, {"type": "string", "pattern": ":"}]}
        ),
    ] = key("Name of the optimizer, or an Optuna sampler as module:Class.", "tpe", DEFAULT_OPTIMIZER)
    line_price: float = key(
        "Gain that a changed setting must bring to stay in the winner, as a share.", 0.02, 0.01, ge=0, le=1
    )
    warm_start: Texts = key("Files of earlier studies of the same server.", ["old.yaml"], ())

    @model_validator(mode="after")
    def _refuse_both(self) -> Self:
        for several, one, own in (("targets", "target", OF_TARGETS), ("loads", "load", ("across_loads",))):
            if self.gives(several) and self.gives(one):
                wrong = f"`{one}:` and `{several}:` cannot be combined"
                raise Refused(wrong, "Leave one of the two out", at=(one,))
            for name in own:
                if self.gives(name) and not self.gives(several):
                    wrong = f"`{name}:` needs `{several}:`, which are missing"
                    remedy = f"Leave `{name}:` out, or write `{several}:`"
                    raise Refused(wrong, remedy, at=(name,))
        return self


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a study file; it completes the names of what is registered here."""
    return make_schema(StudyFile, "tuner study")
