"""An application that a study starts itself, behind the web server that is tuned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tuner.ports import (
    HTTP,
    Argv,
    Completed,
    Config,
    Facts,
    Files,
    Host,
    Needs,
    Process,
    Site,
)

NAME = "backend"
"""Of the application among the servers of a study."""
PORT = 9000
"""Where it is told to listen, unless another server does so there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application as a private server: it is started, and has no settings."""

    command: Sequence[str]
    """With `{port}` and `{folder}`."""
    folder: str
    """Of the study file."""
    port: int | None = None
    """Where it listens when it cannot be told."""
    speaks: str = HTTP
    """The protocol in which it is asked."""

    name: ClassVar[str] = NAME
    package: ClassVar[str] = ""
    denied: ClassVar[tuple[str, ...]] = ()

    def detect(self, host: Host) -> Facts:
        return Facts(port=self.port or PORT, speaks=self.speaks)

    def needs(self, config: Config) -> Needs:
        return Needs()

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        return ()

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return ()

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return {}

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return None

    def start(self, site: Site, facts: Facts) -> Argv | None:
        values = {"{port}": str(site.port), "{folder}": self.folder}
        return tuple(_fill(word, values) for word in self.command)

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        return {}


def _fill(word: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        word = word.replace(placeholder, value)
    return word
