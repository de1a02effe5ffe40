"""Any other program as a server: its files are templates, its commands stand in the study file.

```yaml
servers:
  - name: command
    template: web.conf.j2
    check: [web-server, --check, "{directory}/web.conf"]
    start: [web-server, --foreground, --config, "{directory}/web.conf"]
    read_back: [web-server, --ask, "{port}"]     # prints NAME=VALUE lines, or a JSON object
    stop: [web-server, --stop, "{directory}/web.pid"]
space: [./web.yaml]                              # `server: command`
```
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers.command.template import Template, refuse_lines
from tuner.errors import ConfigRejected, NotEffective, UsageError
from tuner.kit import placeholders, programs
from tuner.ports import (
    FASTCGI,
    HTTP,
    Argv,
    Completed,
    Config,
    Facts,
    Files,
    Host,
    Needs,
    Process,
    Scalar,
    Site,
    StoppableServer,
)

_LINE = re.compile(r"^\s*([\w.\[\]-]+)\s*[=:]\s*(.*?)\s*$", re.MULTILINE)
_TRUE = frozenset({"true", "on", "yes", "1"})
_FALSE = frozenset({"false", "off", "no", "0"})
CLOSE = 1e-6
"""Relative difference of two numbers that are the same, written with fewer digits."""


SKELETON = """\
study: {name}
servers:
  - name: command
    # Your server, which runs in the foreground and listens on 127.0.0.1:{{port}}. In a command, a setting of
    # `space:` is written as {{NAME}}; {{folder}} is the folder of this file.
    start: [gunicorn, -b, "127.0.0.1:{{port}}", -w, "{{workers}}", --chdir, "{{folder}}", "app:app"]
    # A configuration file: web.conf.j2 becomes {{directory}}/web.conf. In it: {{{{ settings.workers }}}}.
    # template: web.conf.j2
    # Must exit with 0 before each start:
    # check: [gunicorn, --check-config, --chdir, "{{folder}}", "app:app"]
    # Prints NAME=VALUE for each active setting, so that tuner can check what a trial measures:
    # read_back: [sh, "{{folder}}/ask.sh", "{{port}}"]
    # Asks the server to end; without this command, tuner kills the server:
    # stop: [kill, …]

# The settings that may be tuned, with their ranges. Expressions may use cores, memory_mib and connections.
# {{allow: [semantic, risky]}} and other entries refine them; docs/spaces.md has every key.
space:
  - server: command
    title: My application
    parameters:
      workers:
        kind: int           # or float, bool, categorical with choices: [a, b]
        low: 1
        high: 4 * cores
        scale: log
        default: 1
        why: Processes that answer requests at the same time; each takes memory.
        source: https://docs.gunicorn.org/en/stable/settings.html

# The server runs in a network namespace of its own; nothing installed is changed.
target: {{host: local, mode: sandbox}}

load:
  generator: {generator}          # {generators}
  path: /                 # a page that the server answers with 200; its length is learned in each trial
  connections: 100
  keepalive: true
"""
_COMPLAINT = re.compile(r"\b(?:error|fail\w*|fatal|panic|refused|too many|cannot|can't)\b", re.IGNORECASE)
_NO_PREFIX = re.compile(r"(?!)")
_NO_TEMPLATES: Mapping[str, str] = MappingProxyType({})


def read_values(printed: str, config: Config) -> dict[str, Scalar]:
    """Return the active value of each setting of a configuration, in the kind in which it was asked.

    Raises NotEffective when nothing is said of a setting: then it is not known what was measured.
    """
    said = _read_json(printed) if printed.lstrip().startswith("{") else dict(_LINE.findall(printed))
    if missing := [name for name in config if name not in said]:
        shown = " ".join(printed.split())[:200]
        raise NotEffective(
            f"command: read_back gives no value of {', '.join(missing[:5])}; it printed {shown!r}. "
            f"Let it print a line {missing[0]}=VALUE."
        )
    return {name: _as_asked(said[name], asked) for name, asked in config.items()}


def _read_json(printed: str) -> Mapping[str, object]:
    try:
        said = json.loads(printed)
    except ValueError as error:
        raise NotEffective(f"command: read_back printed no JSON: {error}. Correct this command.") from error
    return said if isinstance(said, dict) else {}


def _as_asked(said: object, asked: Scalar) -> Scalar:
    """Return what was said in the kind of what was asked; as a text where it is none of that kind."""
    text = json.dumps(said) if isinstance(said, bool) else str(said)
    if isinstance(asked, bool):
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower(), text)
    if isinstance(asked, str):
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    is_same = math.isclose(number, asked, rel_tol=CLOSE if isinstance(asked, float) else 0.0)
    if is_same:
        return asked
    return int(number) if number.is_integer() else number


class Command:
    """A server of your own: any program with a template and commands in the study file."""

    name: ClassVar[str] = "command"
    package: ClassVar[str] = ""
    skeleton: ClassVar[str] = SKELETON
    """What a new study says of it."""
    # What its settings are is the author's; such a study is checked with --trust only.
    denied: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        *,
        templates: Mapping[str, str] = _NO_TEMPLATES,
        folder: str = "",
        check: Sequence[str] = (),
        start: Sequence[str] = (),
        stop: Sequence[str] = (),
        read_back: Sequence[str] = (),
    ) -> None:
        """Take what a study says of it; without that, it is only known by its name.

        Args:
            templates: name of each file → text of its template.
            folder: of the study file.
            check: command that must accept the files, and exits with 0.
            start: command that serves in the foreground.
            stop: command that asks it to end.
            read_back: command that prints what is active.

        Raises UsageError for a template that is none.
        """
        self._templates = {name: Template(name, text) for name, text in templates.items()}
        self._folder = folder
        self._check, self._start, self._stop = tuple(check), tuple(start), tuple(stop)
        self._read_back = tuple(read_back)

    def detect(self, host: Host) -> Facts:
        if not self._start:
            raise UsageError(
                "servers: command: `start:` is missing. Write {name: command, start: [PROGRAM, …]}; "
                "`tuner init command` writes an example."
            )
        cores = programs.read_online_cpus(host)
        return Facts(program=PurePosixPath(self._start[0]), cores=cores, passes_to=frozenset({HTTP, FASTCGI}))

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return {
            site.directory / name: template.render(config, site).encode()
            for name, template in self._templates.items()
        }

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return self._fill(self._check, site)

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        return ()

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return self._fill(self._start, site)

    def stop(self, site: Site, facts: Facts) -> Argv | None:
        return self._fill(self._stop, site)

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        command = self._fill(self._read_back, site)
        if command is None or not config:
            return {}
        completed = host.run(command, timeout_s=programs.COMMAND_TIMEOUT_S)
        if completed.returncode != 0:
            printed = " ".join(programs.decode(completed).split())[:200]
            raise NotEffective(
                f"command: read_back: `{command[0]}` failed with status {completed.returncode}: {printed!r}."
            )
        return read_values(completed.stdout.decode(errors="replace"), config)

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return programs.find_complaints(log, about=_COMPLAINT, prefix=_NO_PREFIX)

    def needs(self, config: Config) -> Needs:
        return Needs()

    def _fill(self, command: Argv, site: Site) -> Argv | None:
        """Return a command with its placeholders replaced, word by word; None where none is given.

        Raises ConfigRejected for a setting that the configuration does not have, or no single line.
        """
        for name, value in site.settings.items():
            refuse_lines(name, value)
        values = {
            **{name: _as_word(value) for name, value in site.settings.items()},
            "port": str(site.port),
            "directory": str(site.directory),
            "document_root": str(site.document_root),
            "backend": site.backend.address if site.backend is not None else "",
            "folder": self._folder,
        }
        try:
            return placeholders.fill(command, values) or None
        except KeyError as error:
            raise ConfigRejected(
                f"command: `{command[0]}` takes {{{error.args[0]}}}, and this configuration has no such "
                "setting. Use this setting in a template instead: a template can test whether a setting "
                "exists."
            ) from error


def _as_word(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


if TYPE_CHECKING:
    _private: StoppableServer = Command()
