"""Any other program as load generator: its command line and how to read its result stand in the study file.

```yaml
load:
  generator: command
  command: [my-load, --url, "{url}", --connections, "{connections}", --seconds, "{duration_s}"]
  result:
    json: {correct: /requests/ok, failures_status: /requests/bad, latency_p99_ms: /latency/p99}
    scale: {latency_p99_ms: 1000}     # it gives seconds
```

`json` maps names to JSON pointers (RFC 6901). In its place, `regex` is a regular expression or a list of them
whose named groups are the names. `file` names a file in `{directory}` that is read in place of stdout.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import ClassVar

from tuner.adapters.loads._command_result import ResultReader
from tuner.adapters.loads._command_settings import reader_of
from tuner.errors import UsageError
from tuner.kit.load_command import refuse_unsendable
from tuner.kit.load_output import reading, text_of, unreadable
from tuner.ports import H2, H2C, HTTP1, Argv, Completed, Files, LoadResult, Workload

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_PLACEHOLDERS = ("url", "connections", "duration_s", "directory", "threads", "certificate")
_NEEDED = ("url", "duration_s")
"""Load goes to the target of the study only, and for a bounded time."""


class Command:
    """A load generator of your own: any command with a result as JSON or text."""

    name: ClassVar[str] = "command"
    package: ClassVar[str] = ""

    def __init__(self, command: Sequence[str] = (), result: Mapping[str, object] | None = None) -> None:
        """Check the `command` and `result` of a study's load. Raises UsageError for what cannot be used."""
        self._argv = _checked(command)
        self._reader: ResultReader = reader_of(result)

    def version_command(self) -> Argv | None:
        return None

    def read_version(self, printed: Completed) -> str:
        return ""

    def files(self, workload: Workload) -> Files:
        # An empty file, so that a result of the window before is never read for this one's.
        return dict.fromkeys(self.outputs(workload), b"")

    def command(self, workload: Workload) -> Argv:
        refuse_unsendable(self.name, workload, protocols=(HTTP1, H2C, H2))
        values = {
            "url": workload.url,
            "connections": str(workload.connections),
            "duration_s": f"{workload.duration_s:g}",
            "directory": str(workload.directory),
            "threads": str(workload.threads),
            "certificate": str(workload.certificate or ""),
        }
        return tuple(_PLACEHOLDER.sub(lambda found: values[found.group(1)], item) for item in self._argv)

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return () if self._reader.file is None else (workload.directory / self._reader.file,)

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        with reading(self.name, "result", completed):
            if completed.returncode:
                raise unreadable(self.name, f"{self._argv[0]} failed", completed)
            content = completed.stdout if self._reader.file is None else b"".join(outputs.values())
            return self._reader.read(text_of(content), workload)


def _checked(command: Sequence[str]) -> Argv:
    if isinstance(command, str) or not command or not str(command[0]):
        raise UsageError(
            f"load.command: {command!r} is no command. Write the program and its arguments as a list: "
            '[my-load, "{url}", "{duration_s}"].'
        )
    argv = tuple(str(item) for item in command)
    used = [name for item in argv for name in _PLACEHOLDER.findall(item)]
    for name in used:
        if name not in _PLACEHOLDERS:
            known = ", ".join(f"{{{each}}}" for each in _PLACEHOLDERS)
            raise UsageError(f"load.command: {{{name}}} is no known placeholder. Known are {known}.")
    for name in _NEEDED:
        if name not in used:
            raise UsageError(
                f"load.command: {{{name}}} is missing, so tuner could not set it. Add it to the command."
            )
    return argv
