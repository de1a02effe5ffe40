"""What a format starts from: the files of one server, for the default and for the winner."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.ports import Config, Facts, Files, Server, Site

SITE = Site(
    directory=PurePosixPath("/run/tuner-export"), document_root=PurePosixPath("/run/tuner-export/content")
)
"""Where the private instance would live; nothing is written there, formats recognise its paths by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The same site twice, so that every difference is a setting."""

    default: Files
    winner: Files


def render_both(server: Server, default: Config, winner: Config, facts: Facts) -> Rendered:
    """Let a server's adapter render both configurations, each without the settings of other servers."""
    return Rendered(
        default=server.render(default, SITE, facts), winner=server.render(winner, SITE, facts)
    )
