"""What a format starts from: the files of one server, for the default and for the winner."""

from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from types import MappingProxyType

from tuner.export.lowered import Lowered, find_lowered, keep_limits
from tuner.export.rewritten import Rewritten, StoredFiles
from tuner.ports import Config, DropIn, Facts, PrivateServer, Site, Upstream
from tuner.space import Space

SITE = Site(
    directory=PurePosixPath("/run/tuner-export"), document_root=PurePosixPath("/run/tuner-export/content")
)
"""Where the private instance would live; nothing is written there, formats recognise its paths by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The same site twice, so that every difference is a setting."""

    default: StoredFiles
    winner: StoredFiles
    drop_in: DropIn | None = None
    """Where an installed server takes these settings besides its own files."""
    reason: str = ""
    """Why the installed files are not changed instead."""
    lowered: Lowered = field(default_factory=dict)
    backend: Upstream | None = None
    """Whom the instance passes requests to; an operator has one of his own in its place."""
    installed: Rewritten | None = None
    """What the winner makes of the installed files beside the instance, where these can be changed too."""


def render_both(
    server: PrivateServer,
    space: Space,
    winner: Config,
    facts: Facts,
    *,
    reason: str = "",
    backend: Upstream | None = None,
    installed: Config = MappingProxyType({}),
) -> Rendered:
    """Let a server's adapter render the default and the winner.

    A setting that became active by a choice, but is at its own default, is left to the server: only what
    was chosen, or follows from a choice, is worth a line. Limits that are installed higher stay as they are.
    """
    default = space.default()
    changed = space.changes(winner, derived=True)
    own = space.for_server({name: new for name, (_, new) in changed.items()}, server.name)
    written = keep_limits(space, own, installed)
    kept = {name: default[name] for name in own.keys() - written.keys() if name in default}
    told = {name: value for name, value in winner.items() if name in default or name in changed} | kept
    site = replace(SITE, backend=backend)
    return Rendered(
        default=server.render(space.for_server(default, server.name), site, facts),
        winner=server.render(space.for_server(told, server.name), site, facts),
        drop_in=facts.drop_in,
        reason=reason,
        lowered=find_lowered(space, written, installed),
        backend=backend,
    )
