"""What an HAProxy file says, read apart from the code that wrote it, and what shows that HAProxy reads it.

HAProxy answers no question about most of its settings (management.txt, 9.3). What it takes is what stands in
a file that it accepts, as long as it refuses the same file with the setting's keyword misspelt: then that
line was read, and at that place.
"""

from collections.abc import Iterator, Mapping

from tuner.ports import Config, Scalar

GLOBAL, FRONTEND = "global", "frontend web"
OPTIONS = {
    f"option.{name}" for name in ("dontlog-normal", "splice-auto", "tcp-smart-accept", "tcp-smart-connect")
}
BY_ITSELF: Mapping[str, Scalar] = {
    "nbthread": "auto", "maxconn": "auto", "tune.runqueue-depth": "auto", "maxpipes": 0,
    "busy-polling": False, "option.splice-auto": False, "option.tcp-smart-connect": False,
    "option.dontlog-normal": False, "log": "off", "bind.shards": "one",
}  # fmt: skip
"""What holds without a line (configuration.txt, 3.1, 3.2, 4.2, 5.1)."""
Line = tuple[str, list[str]]
"""A section, and the words of one of its lines."""


def read_file(text: str) -> Config:
    """Return every setting of the search space that the file says."""
    lines = _lines(text)
    return {**BY_ITSELF, **dict(pair for section, words in lines for pair in _settings(section, words))}


def misspell(text: str) -> Iterator[tuple[str, str]]:
    """Yield each setting that has a keyword in the file, and the file with that keyword misspelt."""
    lines = list(_lines(text))
    for number, (section, words) in enumerate(lines):
        for name, _ in _settings(section, words):
            keyword = name.partition(".")[2] if name.startswith(("option.", "server.", "bind.")) else name
            keyword = "maxconn" if name == "frontend.maxconn" else keyword
            wrong = [f"{word}x" if word == keyword else word for word in words]
            assert wrong != words, name
            yield name, _write([*lines[:number], (section, wrong), *lines[number + 1 :]])


def _lines(text: str) -> Iterator[Line]:
    section = ""
    for line in text.splitlines():
        if words := line.split():
            section = section if line[0].isspace() else line
            yield section, words


def _write(lines: list[Line]) -> str:
    return "".join(f"{' ' * 4 * (' '.join(words) != section)}{' '.join(words)}\n" for section, words in lines)


def _settings(section: str, words: list[str]) -> Iterator[tuple[str, Scalar]]:
    """Yield the settings that a line says; none for what is the same in every file."""
    match words:
        case ["no", "option", name]:
            yield f"option.{name}", False
        case ["option", name] if f"option.{name}" in OPTIONS:
            yield f"option.{name}", True
        case ["log", "stdout", *_]:
            yield "log", "on"
        case ["bind", _, "shards", value]:
            yield "bind.shards", value
        case ["server", _, _, *pairs]:
            for name, value in zip(pairs[::2], pairs[1::2], strict=True):
                yield f"server.{name}", _read(value.removesuffix("s"))
        case ["maxconn", value] if section == FRONTEND:
            yield "frontend.maxconn", _read(value)
        case _ if section == GLOBAL or words[0] in {"balance", "http-reuse"}:
            yield from _plain(*words)


def _plain(name: str, value: str = "on", *more: str) -> Iterator[tuple[str, Scalar]]:
    """Yield a setting of one word behind its name, or of none where the name switches it on."""
    if not more and name != GLOBAL:
        yield name, value if name in {"balance", "http-reuse"} else _read(value)


def _read(word: str) -> Scalar:
    return word == "on" if word in {"on", "off"} else int(word)
