"""Writes a commented study file for a server that is installed here."""

import os
import re
from pathlib import Path

from tuner import plugins
from tuner.errors import TargetError, UsageError
from tuner.space import available_spaces, describe_space

TEMPLATE = """\
# What to tune, under which load, for how long. Check it with `tuner check {path}`,
# run it with `tuner run {path}`. {detected}
study: {name}
servers: [{server}]

# Search spaces: built-in names or paths; later entries refine earlier ones.
#   - {{only: [a, b]}}             tune only these
#   - {{set: {{a: 1}}}}              keep a at 1
#   - {{allow: [semantic, risky]}}  also tune what changes behaviour or may hurt
space:
  - {space}

# A private instance in a network namespace of its own; the installed service is not touched.
# To tune what is installed, here or elsewhere: {{host: "ssh://user@web1", mode: managed}}
target: {{host: local, mode: sandbox}}

load:
  generator: wrk          # {generators}
  path: /index.html
  connections: 100
  keepalive: {keepalive}

content: builtin          # one small page; or the path of a document root

# Or with what it costs: [maximize goodput_rps, minimize latency_p99_ms] (or cpu_us_per_request).
objective: maximize goodput_rps
constraints: [failure_rate <= 0.001]

budget: {{preset: standard}}   # quick (5 minutes), standard (about 75), thorough
storage: sqlite           # beside this file, in {folder}/
seed: 1

# optimizer: noisy-gp     # or tpe, gp, random, qmc, cmaes, or an Optuna sampler as module:Class
# warm_start: [old.yaml]  # earlier studies of the same server, whose best settings are tried first
"""


NO_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
"""Words that are no text in YAML 1.1 (yaml.org/type)."""


def write_study(server: str, path: Path) -> Path:
    """Detect the server and write a study file for it.

    Raises:
        UsageError: no such adapter, no space for it, or the file is there already.
        TargetError: the server is not installed, or the file cannot be written.
    """
    if not path.name:
        msg = f"{path}: this is a folder. Give the name of a file with -o."
        raise UsageError(msg)
    adapter = plugins.make_server(server)
    facts = adapter.detect(plugins.make_host("local"))
    space = space_for(server)
    version = ".".join(map(str, facts.version))
    text = TEMPLATE.format(
        path=path,
        name=_name_after(path, server),
        server=server,
        space=space,
        detected=f"Found here: {server} {version}." if version else "",
        generators=", ".join(plugins.adapter_names(plugins.Kind.LOAD_GENERATOR)),
        # A server that ties a thread to each connection differs most when connections are not kept.
        keepalive="false" if server == "apache" else "true",
        folder=path.with_suffix(".study").name,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        msg = f"{path}: this file is there already. Give another with -o, or remove it."
        raise UsageError(msg) from error
    except OSError as error:
        msg = f"{path}: cannot be written ({error.strerror}). Give another path with -o."
        raise TargetError(msg) from error
    return path


def _name_after(path: Path, server: str) -> str:
    """Name a study after its file, with the letters that a name may have.

    A word that YAML takes for something else than text comes after the server's name.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).lstrip("._-")[:64]
    if not name:
        return server
    return f"{server}-{name}"[:64] if name.lower() in NO_TEXT else name


def space_for(server: str) -> str:
    """Name the first built-in space of a server."""
    for space in available_spaces():
        if any(row["server"] == server for row in describe_space(space)):
            return space
    msg = f"{server}: there is no built-in space for it. Write one and name its path in the study file."
    raise UsageError(msg)
