"""Study files, and spaces of their author's own, that mean harm: a valid skeleton with hostile mutations.

They keep to the grammar, so that each reaches as far into the program as one mutation lets it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from tests.property.hostile_tables import (
    BOMB,
    EXPRESSIONS,
    NAMES,
    PARAMETER_KEYS,
    RAW,
    STUDY_KEYS,
    TEXTS,
    Keys,
)
from tests.property.hostile_values import scalars

STUDY = "study.yaml"
SPACE = "own.yaml"
SPACES = {
    "nginx": "nginx",
    "apache": "apache-event",
    "apache-mpm": "apache-mpm",
    "apache-prefork": "apache-prefork",
    "h2o": "h2o",
    "sysctl": "sysctl-net",
    "php-fpm": "php-fpm",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileStudy:
    """A folder with a study in it."""

    files: Mapping[str, bytes]
    has_pipe: bool

    def put_into(self, folder: Path) -> Path:
        """Write it; tell where the study file is."""
        folder.mkdir(parents=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        if self.has_pipe:
            os.mkfifo(folder / "pipe.yaml")
        return folder / STUDY


class Raw(str):
    """A piece of YAML that is written as it is."""

    __slots__ = ()


def to_yaml(value: object) -> str:
    """Write a value in flow style."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{to_yaml(key)}: {to_yaml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(to_yaml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


def to_lines(document: Mapping[str, object]) -> bytes:
    """Write a document with one top-level key a line."""
    text = "".join(f"{to_yaml(key)}: {to_yaml(value)}\n" for key, value in document.items())
    return text.encode(errors="surrogatepass")


def change(document: dict[str, object], keys: Keys, value: object) -> None:
    """Put a value at a place, making the mappings around it."""
    *around, last = keys
    here = document
    for key in around:
        there = here.get(key)
        here[key] = here = dict(there) if isinstance(there, dict) else {}
    here[last] = value


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, object]:
    """Any entry of a parameter, valid but for some of its keys."""
    kind = draw(st.sampled_from(["int", "int", "categorical", "bool", "float"]))
    entry: dict[str, object] = {"kind": kind, "why": "x", "source": "y"}
    if kind in {"int", "float"}:
        entry |= {"low": 1, "high": "max(64, cores)", "default": draw(st.sampled_from([1, 2, 64, "cores"]))}
    elif kind == "categorical":
        choices = draw(
            st.sampled_from([["on", "off"], ["data", "none"], ["combined", "common"], ["auto", "off"]])
        )
        entry |= {"choices": choices, "default": choices[0]}
    else:
        entry["default"] = True
    for key in draw(st.lists(st.sampled_from(sorted(PARAMETER_KEYS)), max_size=2)):
        entry[key] = draw(st.sampled_from(PARAMETER_KEYS[key]) | st.sampled_from(RAW).map(Raw))
    return entry


@st.composite
def spaces(draw: st.DrawFn, server: str) -> dict[str, object]:
    """Any space of the author's own."""
    names = st.sampled_from(NAMES)
    document: dict[str, object] = {"space": "own", "title": "mine"}
    if draw(st.integers(0, 4)):
        document["server"] = draw(
            st.sampled_from([server, server, server, "apache", "nginx", "sysctl", "x;y"])
        )
    if draw(st.booleans()):
        document["parameters"] = {
            name: draw(parameters()) for name in draw(st.lists(names, min_size=1, max_size=3))
        }
    if draw(st.booleans()):
        values = st.sampled_from(EXPRESSIONS) | scalars
        document["derived"] = {
            name: {"value": draw(values)}
            | draw(st.sampled_from([{}, {"when": "cores > 0"}, {"kind": "float"}]))
            for name in draw(st.lists(names, min_size=1, max_size=2))
        }
    extras: Mapping[str, st.SearchStrategy[object]] = {
        "constraints": st.lists(
            st.builds(lambda rule: {"rule": rule}, st.sampled_from(EXPRESSIONS)), max_size=3
        ),
        "presets": st.dictionaries(
            names, st.builds(lambda values: {"values": values}, st.dictionaries(names, scalars))
        ),
        "dead": st.dictionaries(names, st.sampled_from(TEXTS), max_size=2),
        "only": st.lists(names, max_size=3),
        "without": st.lists(names, max_size=3),
        "set": st.dictionaries(names, scalars | st.sampled_from(EXPRESSIONS), max_size=3),
        "allow": st.sampled_from([["risky", "semantic"], ["x"], "all"]),
        "exec": st.just("id"),
    }
    for key in draw(st.lists(st.sampled_from(sorted(extras)), max_size=2)):
        document[key] = draw(extras[key])
    return document


def spoil(content: bytes) -> st.SearchStrategy[bytes]:
    """Break a file as YAML, or leave it nearly as it is."""
    return st.sampled_from(
        [
            b"\xef\xbb\xbf" + content,
            content.decode("utf-8", "replace").encode("utf-16"),
            content + b"\x00",
            content + b"\xff\xfe",
            BOMB + content,
            content + b"study: again\n",
            b"---\n" + content + b"---\n" + content,
            b"%YAML 9.9\n---\n" + content,
            b"%TAG ! tag:yaml.org,2002:python/\n---\n" + content,
            content.replace(b": ", b":\t"),
            content + b"x: " + b"[" * 9000,
            content + b"x: " + b"{a: " * 9000,
            content + b"#" * 300_000,
            content + b"x: " + b"y" * 250_000,
            b"",
            b"\n",
            b"[]",
            b"x",
            content + b"".join(b"k%d: 1\n" % number for number in range(20_000)),
            content.replace(b"\n", b"\r"),
            b"- " * 9000,
            content + b"? [a, b]\n: 1\n",
            content + b"x: !!python/object/apply:os.system [id]\n",
            content * 2,
        ]
    )


@st.composite
def hostile_studies(draw: st.DrawFn) -> HostileStudy:
    """Any hostile study, with the files that it names."""
    server = draw(st.sampled_from(["nginx", "nginx", "apache", "h2o"]))
    servers, space = [server], [SPACES[server]]
    if draw(st.integers(0, 3)) == 0:
        servers, space = [*servers, "sysctl"], [*space, "sysctl-net"]
    document: dict[str, object] = {
        "study": "hostile",
        "servers": servers,
        "space": space,
        "load": {"connections": 2},
    }
    own = draw(spaces(server))
    how = draw(st.sampled_from(["file", "file", "inline", "alone", "none"]))
    document["space"] = {
        "file": [*space, f"./{SPACE}"], "inline": [*space, own], "alone": [f"./{SPACE}"], "none": space,
    }[how]  # fmt: skip
    for keys in draw(st.lists(st.sampled_from(sorted(STUDY_KEYS)), min_size=int(how == "none"), max_size=2)):
        value = draw(st.sampled_from([*STUDY_KEYS[keys]]) | st.sampled_from(RAW).map(Raw))
        if keys[0] == "space" and keys[1:]:
            document["space"] = [*space, {keys[1]: value}]
        else:
            change(document, keys, value)
    study, own_space = to_lines(document), to_lines(own)
    if draw(st.integers(0, 11)) == 0:
        study = draw(spoil(study))
    if draw(st.integers(0, 11)) == 0:
        own_space = draw(spoil(own_space))
    return HostileStudy(files={STUDY: study, SPACE: own_space}, has_pipe=b"pipe.yaml" in study)
