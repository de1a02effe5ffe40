"""Stands for a kernel with TUX, and for its daemon: settings are files, and whoever sets no known one fails.

Usage: tux.py make | tux.py -t THREADS -r DOCUMENT_ROOT | tux.py --stop
`make` shows the settings with the kernel's own defaults, where $KERNEL says that they are.
"""

import os
import re
import sys
from pathlib import Path

from page import serve_page

DEFAULTS = {
    "documentroot": "/var/www/tux/", "threads": "2", "max_connect": "10000", "max_keepalives": "10000",
    "max_backlog": "2048", "keepalive_timeout": "0", "max_free_requests": "1000", "defer_accept": "1",
    "push_all": "0", "ack_pingpong": "1", "zerocopy_header": "1", "zerocopy_sendfile": "1", "logging": "0",
}  # fmt: skip
"""Of net/tux/proc.c and accept.c, as far as the example sets them."""
MOST_THREADS = 16


def make(kernel: Path) -> None:
    """Show the settings with their defaults, and where each thread listens."""
    (kernel / "settings").mkdir(parents=True)
    for name, value in DEFAULTS.items():
        (kernel / "settings" / name).write_text(f"{value}\n")
    for thread in range(MOST_THREADS):
        (kernel / "listen" / str(thread) / "listen").mkdir(parents=True)


def serve(kernel: Path, threads: int, root: Path) -> None:
    """Refuse what is no setting of the kernel's, then serve where all threads listen."""
    settings, listen = kernel / "settings", kernel / "listen"
    strange = {each.name for each in settings.iterdir()} - DEFAULTS.keys()
    texts = {each.name: each.read_text().strip() for each in settings.iterdir()}
    wrong = [
        name for name, text in texts.items() if name != "documentroot" and not re.fullmatch(r"\d+", text)
    ]
    if strange or wrong or int(texts["threads"]) != threads or Path(texts["documentroot"]) != root:
        sys.exit(f"tux: cannot serve with {texts}")
    places = {(listen / str(thread) / "listen/0").read_text().strip() for thread in range(threads)}
    (place,) = places
    serve_page(int(place.removeprefix("http://0.0.0.0:")), root / "index.html")


if __name__ == "__main__":
    shown = Path(os.environ["KERNEL"])
    match sys.argv[1:]:
        case ["make"]:
            make(shown)
        case ["-t", count, "-r", place]:
            serve(shown, int(count), Path(place))
        case ["--stop"]:
            (shown / "stopped").touch()
        case other:
            sys.exit(f"tux: unknown arguments {other}")
