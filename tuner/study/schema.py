"""The file format of a study as models, from which the JSON Schema for editors is made.

`tuner.study.file` reads study files, and refuses more than a schema can say.
`python -m tuner.study.schema > search_spaces/study.schema.json` writes the published schema again.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from tuner import plugins
from tuner.optimize.catalogue import DEFAULT_OPTIMIZER, OPTIMIZERS
from tuner.ports import H2, H2C, HTTP, HTTP1, WEBSOCKET
from tuner.records.blend import Across
from tuner.records.hosts import AcrossHosts
from tuner.space import available_spaces
from tuner.space.schema import DIALECT, FLAG, SpaceFile, tidy
from tuner.study.file import ENCODINGS, HOST_URL, MOST_LOGS_MIB, MOST_STREAMS, NAME
from tuner.study.loads.builtin_loads import BUILTIN, BUILTIN_LOADS
from tuner.study.loads.load_bounds import LEAST_REQUESTS, MOST_CONNECTIONS, MOST_REQUESTS, MOST_WINDOW_S
from tuner.study.loads.mix import (
    BODIES,
    CONTAINS,
    METHODS,
    MOST_BYTES,
    MOST_KINDS,
    MOST_TEXT_LETTERS,
    SHA256,
)
from tuner.study.loads.several_loads import LEAST_LOADS, MOST_LOADS
from tuner.study.loads.several_loads import NAME as LOAD_NAME
from tuner.study.many_targets import LEAST_TARGETS, MOST_TARGETS, OF_TARGETS, REFUSE, UNLIKE
from tuner.study.objective import COSTS, GOODPUT, METRICS
from tuner.study.presets import MOST_MINUTES, MOST_TRIALS, PRESETS
from tuner.study.settings import DEFAULT_GENERATOR, LOCAL

PUBLISHED = Path(__file__).parents[1] / "search_spaces" / "study.schema.json"

# Without quotes a year is a number to an editor, and a text to tuner.
_TEXT = {"type": ["string", "number"]}
_PATH = {"type": "string", "pattern": r"^/\S*$"}
_BOUND = rf"^\s*({'|'.join(METRICS)})\s*<=\s*([-+.0-9eE]+|default)\s*(%|[a-zµ]+)?(\s*unlike\s+default)?\s*$"
_COSTS = [f"minimize {metric}" for metric in COSTS]
_OBJECTIVE = {"enum": [GOODPUT]}


def _text_of(*words: str) -> WithJsonSchema:
    return WithJsonSchema({"enum": list(words)})


def _form(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({**_TEXT, "pattern": f"^{pattern}$"})


def _one_or_more(one: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})


def _suggest(words: Iterable[str]) -> WithJsonSchema:
    """Return the schema of a text that is completed with these words, and may be another one."""
    return WithJsonSchema({"anyOf": [{"enum": list(words)}, {"type": "string", "minLength": 1}]})


Text = Annotated[str, WithJsonSchema(_TEXT)]
Texts = Annotated[list[str], WithJsonSchema({"type": "array", "items": _TEXT})]
Command = Annotated[list[str], WithJsonSchema({"type": "array", "items": _TEXT, "minItems": 1})]
Flag = Annotated[bool, WithJsonSchema(FLAG)]
Server = Annotated[str, _suggest(plugins.adapter_names(plugins.Kind.SERVER))]
Generator = Annotated[str, _suggest(plugins.adapter_names(plugins.Kind.LOAD_GENERATOR))]
Application = Annotated[str, _suggest(plugins.adapter_names(plugins.Kind.BACKEND))]
SpaceName = Annotated[str, _suggest(available_spaces())]
SitePath = Annotated[str, WithJsonSchema(_PATH)]
Headers = dict[str, Text]
BodyOf = Annotated[
    str,
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(BODIES)},
                {
                    "type": "object",
                    "properties": {
                        CONTAINS: {"type": "string", "minLength": 1, "maxLength": MOST_TEXT_LETTERS}
                    },
                    "required": [CONTAINS],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ServerEntry(_Entry):
    """A server with what is behind it, or one that the study describes itself."""

    name: Server = Field(description="Its adapter.")
    backend: Text | None = Field(None, description="The server of the study that it passes requests to.")
    template: Annotated[list[str], _one_or_more(_TEXT)] | None = Field(
        None, description="Files from which its configuration is made, relative to the study file."
    )
    check: Command | None = Field(None, description="Command that must accept the files before each start.")
    start: Command | None = Field(None, description="Command that serves in the foreground.")
    stop: Command | None = Field(None, description="Command that asks it to end.")
    read_back: Command | None = Field(
        None, description="Command that prints a line NAME VALUE for each value in force."
    )


class TargetEntry(_Entry):
    """Which machine is tuned, and how."""

    host: Text = Field(LOCAL, description="local, or ssh://user@host:port.")
    mode: Literal["sandbox", "managed"] = Field(
        "sandbox", description="sandbox: a private instance. managed: the installed service, put back after."
    )
    watchdog_s: float = Field(
        120, ge=5, le=3600,
        description="Managed: the target puts itself back after so many seconds without a sign of life.",
    )  # fmt: skip
    logs_mib: int | None = Field(
        None, ge=1, le=MOST_LOGS_MIB,
        description="Managed: most MiB of logs that one run may add to a disk; by default a tenth of its "
        "free room, at least 1024. `tuner check` says how fast they grow.",
    )  # fmt: skip


class TargetsEntry(TargetEntry):
    """One of several machines."""

    host: Text = Field(description="local, or ssh://user@host:port.")


class RequestEntry(_Entry):
    """One kind of request of a mix, with its correct response."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["path"]}, {"required": ["url"]}]})

    path: SitePath | None = Field(None, description="What is asked for; begins with /.")
    url: Text | None = Field(
        None, description="Managed: instead of the path a whole URL, whose host becomes the header Host."
    )
    method: Annotated[str, _text_of(*METHODS)] = Field("GET", description="HTTP method.")
    headers: Headers = Field(default={}, description="Headers by name.")
    status: int = Field(200, ge=200, le=599, description="Status of a correct response.")
    bytes: int | None = Field(
        None, ge=0, le=MOST_BYTES, description="Length of its body; learned at each start when left out."
    )
    sha256: Annotated[str, _form(SHA256.pattern)] | None = Field(
        None, description="Checksum of its body; looked at once in each start."
    )
    body: BodyOf | None = Field(None, description="How its body is judged; learned when left out.")
    weight: float = Field(1, ge=0, le=1e9, description="Share of the mix, relative to the others.")


class LoadEntry(_Entry):
    """What is sent, by what."""

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {"time_limit_s": ["requests_total"]}})

    generator: Generator = Field(
        DEFAULT_GENERATOR, description="Load generator; `tuner adapters` lists them."
    )
    host: Annotated[str, _one_or_more({"type": "string", "pattern": f"^({LOCAL}|{HOST_URL.pattern})$"})] = (
        Field(LOCAL, description="Where the load comes from: local, ssh://user@host:port, or several.")
    )
    path: Annotated[str, WithJsonSchema({"type": "string", "pattern": r"^(/|https?://)\S*$"})] | None = Field(
        None, description="What is asked for; of an installed service also a whole URL."
    )
    content: Annotated[str, _text_of(*BUILTIN_LOADS)] | None = Field(
        None, description="Built-in content in place of a path; `tuner loads`."
    )
    connections: int = Field(100, ge=1, le=MOST_CONNECTIONS, description="Connections at once.")
    keepalive: Flag = Field(True, description="false: a new connection for each request.")  # noqa: FBT003
    threads: int = Field(1, ge=1, le=256, description="Threads of the generator.")
    protocol: Annotated[str, _text_of(HTTP1, H2, H2C)] = Field(
        HTTP1, description="h2: HTTP/2 over TLS. h2c: HTTP/2 in the clear."
    )
    tls: Flag = Field(False, description="Private instances: HTTP/1.1 over TLS.")  # noqa: FBT003
    streams: int = Field(
        1, ge=1, le=MOST_STREAMS, description="Requests at once on each connection, over HTTP/2."
    )
    accept_encoding: Annotated[str, _text_of(*ENCODINGS)] | None = Field(
        None, description="Clients that take compressed pages."
    )
    headers: Headers = Field(
        default={}, description="Headers of every request, by name; values are not shown."
    )
    body: BodyOf | None = Field(
        None, description="How the body of a response is judged; learned from several when left out."
    )
    ca: Text | None = Field(
        None, description="Managed: file on the target by which the server's certificate is checked."
    )
    verify: Flag = Field(True, description="Managed: false accepts any certificate.")  # noqa: FBT003
    requests: list[RequestEntry] | None = Field(
        None, min_length=1, max_length=MOST_KINDS, description="A mix: kinds of requests, each at its share."
    )
    requests_total: int | None = Field(
        None, ge=LEAST_REQUESTS, le=MOST_REQUESTS, description="Each window ends after so many requests."
    )
    time_limit_s: float = Field(
        60, ge=1, le=MOST_WINDOW_S, description="What of them is not answered after so many seconds failed."
    )
    command: Command | None = Field(None, description="Of the generator command: program and arguments.")
    result: dict[str, Any] | None = Field(
        None, description="Of the generator command: how its output is read."
    )
    script: Text | None = Field(None, description="Script of a generator that takes one.")
    token_directory: SitePath | None = Field(
        None, description="Managed: document root on the target, where its address is another host's."
    )


class NamedLoadEntry(LoadEntry):
    """One of several loads."""

    name: Annotated[str, _form(LOAD_NAME.pattern)] | None = Field(
        None, description="Its name in results; that of its content when left out."
    )
    weight: float = Field(1, ge=0, le=1e6, description="What it counts, relative to the others.")


class BackendEntry(_Entry):
    """An application of your own, which is started behind the servers."""

    command: Command = Field(description="Program and arguments, with {port} and {folder}.")
    port: int | None = Field(None, ge=1, le=65535, description="Where it listens when it cannot be told.")
    ready: SitePath | None = Field(None, description="Path that it answers with 200 when it is ready.")
    protocol: Annotated[str, _text_of(HTTP, WEBSOCKET)] = Field(HTTP, description="In which it is asked.")


class BudgetEntry(_Entry):
    """How long a run takes."""

    preset: Annotated[str, _text_of(*PRESETS)] = Field(
        "standard",
        description="; ".join(f"{name}: {plan.minutes:g} minutes" for name, plan in PRESETS.items()) + ".",
    )
    minutes: float | None = Field(None, ge=0.1, le=MOST_MINUTES, description="Wall time of the whole run.")
    trials: int | None = Field(None, ge=1, le=MOST_TRIALS, description="Configurations to try at the most.")


class StudyFile(_Entry):
    """What to tune, under which load, for how long."""

    model_config = ConfigDict(
        json_schema_extra={
            "not": {"anyOf": [{"required": ["load", "loads"]}, {"required": ["target", "targets"]}]},
            "dependentRequired": {
                "across_loads": ["loads"],
                **{key: ["targets"] for key in OF_TARGETS},
            },
        }
    )

    study: Annotated[str, _form(NAME.pattern)] = Field(description="Its name: letters, digits, . _ and -.")
    title: Text | None = Field(None, description="What it asks, in one line.")
    source: Text | None = Field(None, description="Where its question comes from.")
    servers: list[Server | ServerEntry] = Field(
        min_length=1, description="In the order in which requests go through them; `tuner adapters`."
    )
    space: list[SpaceName | SpaceFile] = Field(
        min_length=1,
        description="Names (`tuner spaces`), paths and refinements; later entries refine earlier ones.",
    )
    target: TargetEntry | None = Field(None, description="Which machine is tuned, and how.")
    targets: list[Annotated[str, _form(f"({LOCAL}|{HOST_URL.pattern})")] | TargetsEntry] | None = Field(
        None,
        min_length=LEAST_TARGETS,
        max_length=MOST_TARGETS,
        description="Several machines, for all of which the winner is to hold, in place of one.",
    )
    across: Annotated[str, _text_of(*AcrossHosts)] = Field(
        AcrossHosts.WORST.value, description="What counts of the gains on several machines."
    )
    unlike_hosts: Annotated[str, _text_of(*UNLIKE)] = Field(
        REFUSE, description="Machines of other hardware are refused, or modelled by a level of their own."
    )
    backend: Application | BackendEntry | None = Field(
        None, description="The application that is started behind the servers."
    )
    load: LoadEntry | None = Field(None, description="What is sent, by what.")
    loads: list[NamedLoadEntry] | None = Field(
        None, min_length=LEAST_LOADS, max_length=MOST_LOADS, description="Several loads, in place of one."
    )
    across_loads: Annotated[str, _text_of(*Across)] = Field(
        Across.WEIGHTED.value, description="What counts of the gains under several loads."
    )
    content: Text = Field(BUILTIN, description="builtin, or the path of a document root to serve.")
    objective: Annotated[
        str,
        WithJsonSchema(
            {
                "anyOf": [
                    _OBJECTIVE,
                    {
                        "type": "array",
                        "items": {"enum": [GOODPUT, *_COSTS]},
                        "contains": _OBJECTIVE,
                        "uniqueItems": True,
                        "maxItems": 2,
                    },
                ]
            }
        ),
    ] = Field(GOODPUT, description="Goodput, alone or against one cost: [maximize …, minimize …].")
    constraints: list[Annotated[str, WithJsonSchema({"type": "string", "pattern": _BOUND})]] = Field(
        ["failure_rate <= default"],
        description="Bounds: METRIC <= NUMBER with or without unit, or METRIC <= default.",
    )
    budget: BudgetEntry | None = Field(None, description="How long a run takes.")
    storage: Annotated[str, WithJsonSchema({"type": "string", "pattern": "^sqlite$|://"})] = Field(
        "sqlite", description="sqlite, beside this file, postgresql://…, or grpc://HOST:PORT of a proxy."
    )
    seed: int = Field(1, ge=0, le=2**31, description="Of everything that is drawn.")
    optimizer: Annotated[
        str, WithJsonSchema({"anyOf": [{"enum": list(OPTIMIZERS)}, {"type": "string", "pattern": ":"}]})
    ] = Field(DEFAULT_OPTIMIZER, description="Its name, or an Optuna sampler as module:Class.")
    line_price: float = Field(
        0.01, ge=0, le=1, description="What a changed setting must gain to be shipped, as a share."
    )
    warm_start: Texts | None = Field(None, description="Files of earlier studies of the same server.")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a study file; it completes the names of what is registered here."""
    schema: dict[str, Any] = tidy(StudyFile.model_json_schema())
    return {"$schema": DIALECT, "title": "tuner study", **schema}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
