"""The rows: which server stands behind which, and the study that is run for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STUDIES = Path(__file__).with_name("studies")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    title: str
    server: str = ""
    """What `tuner init` writes a study for; empty where the row has one of its own in studies/."""
    backend: str = ""
    """What stands behind that server."""

    @property
    def study(self) -> Path:
        """Return the row's own study."""
        return STUDIES / f"{self.name}.yaml"


ROWS = (
    Row(name="apache-prefork", title="Apache, prefork", server="apache-prefork"),
    Row(name="apache-worker", title="Apache, worker", server="apache-worker"),
    Row(name="apache-event", title="Apache, event", server="apache"),
    Row(name="nginx", title="nginx", server="nginx"),
    Row(name="nginx-before-h2o", title="nginx before h2o", server="nginx", backend="h2o"),
    Row(name="h2o", title="h2o", server="h2o"),
    Row(name="haproxy-before-nginx", title="HAProxy before nginx"),
    Row(name="caddy", title="Caddy", server="caddy"),
    Row(name="caddy-before-nginx", title="Caddy before nginx"),
    Row(name="php-fpm-behind-nginx", title="php-fpm behind nginx"),
    Row(name="php-fpm-behind-apache", title="php-fpm behind Apache"),
    Row(
        name="websocket-behind-nginx",
        title="WebSocket behind nginx",
        server="nginx",
        backend="websocket-echo",
    ),
    Row(
        name="websocket-behind-apache",
        title="WebSocket behind Apache",
        server="apache",
        backend="websocket-echo",
    ),
)


def choose_rows(names: Sequence[str]) -> tuple[Row, ...]:
    """Return the rows of these names in the table's order, all for none. Raises ValueError for an unknown."""
    known = {row.name for row in ROWS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"there is no row {', '.join(unknown)}. Take of {', '.join(sorted(known))}.")
    return tuple(row for row in ROWS if not names or row.name in names)
