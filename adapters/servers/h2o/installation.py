"""Find the installed h2o, and write other values into its configuration.

What stands at the top of the file is read and changed; hosts and paths may override some of it for
themselves, and that is left alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from tuner.adapters.servers.h2o.builds import MAIN
from tuner.adapters.servers.h2o.settings import SETTINGS
from tuner.adapters.servers.h2o.yaml import Document, Plain, join_words
from tuner.errors import ConfigRejected
from tuner.kit.config_files import find_changes, name_places, read_files
from tuner.kit.services import find_service
from tuner.kit.sites import write_site
from tuner.ports import Config, Facts, Files, Host, Installation

PID_FILE = PurePosixPath("/run/h2o.pid")
STARTER_TITLE = "start_server"


def find_installed(host: Host, facts: Facts) -> Installation:
    """Find the installed service. Raises TargetError when its configuration is missing or no YAML."""
    files = dict(read_files(host, MAIN, package="h2o"))
    while wanted := (document := Document(files, MAIN)).wanted:
        look = host.look(list(wanted))
        files |= {path: look.read(path).content or b"" for path in wanted}
    said = document.read()
    program = str(facts.program)
    pid_file, log = said.get("pid-file", str(PID_FILE)), said.get("error-log")
    service = find_service(
        host, "h2o", check=(program, "-t", "-c", str(MAIN)),
        start=(program, "-m", "daemon", "-c", str(MAIN)), title=STARTER_TITLE,
        pid_file=PurePosixPath(str(pid_file)),
    )  # fmt: skip
    return Installation(
        facts=replace(facts, current=_read_current(document, facts)),
        files=files,
        service=service,
        port=next(_find_ports(said), None),
        log=PurePosixPath(log) if isinstance(log, str) and log.startswith("/") else None,
        sites=tuple(dict.fromkeys(_find_sites(said))),
    )


def rewrite_files(config: Config, installation: Installation) -> Files:
    """Give the file with the values of a configuration, if one differs."""
    current = installation.facts.current
    document = Document(installation.files, MAIN)
    words: dict[str, str] = {}
    for name, value in find_changes(config, current).items():
        if name not in SETTINGS:
            raise ConfigRejected(
                f"h2o: {name[:80]!r} is no setting that tuner changes here. Remove this setting from the "
                "search space."
            )
        if name not in current:
            raise ConfigRejected(
                f"h2o: {name} has a form in this file that tuner does not change. Remove this setting from "
                "the search space."
            )
        words[name] = SETTINGS[name].write(name, value)
    return {MAIN: document.change(words)} if words else {}


def find_overrides(config: Config, installation: Installation) -> dict[str, str]:
    """Return the settings that hosts and paths give otherwise, with the places where they do."""
    places: dict[str, list[str]] = {}
    for place, options in _find_places(Document(installation.files, MAIN).read()):
        for name in config.keys() & options.keys() & SETTINGS.keys():
            if SETTINGS[name].read(join_words(options[name])) != config[name]:
                places.setdefault(name, []).append(place)
    return {name: name_places(places[name]) for name in config if name in places}


def _read_current(document: Document, facts: Facts) -> Config:
    values = document.find_values()
    found = {
        name: setting.read(values[name]) if name in values else setting.default(facts)
        for name, setting in SETTINGS.items()
        if name in values or not document.has(name)
    }
    return {name: value for name, value in found.items() if value is not None}


def _find_ports(said: Mapping[str, Plain]) -> Iterator[int]:
    """Yield the ports without TLS: of the top, then of the hosts."""
    for level in (said, *(host for _, host in _find_below(said, "hosts"))):
        yield from (port for scheme, port in _find_listeners(level) if scheme == "http")


def _find_sites(said: Mapping[str, Plain]) -> Iterator[str]:
    """Yield the URL of each host that has a plain name, by each address of its own or else of the top."""
    for written, host in _find_below(said, "hosts"):
        name, _, only = written.partition(":")
        for scheme, port in (*_find_listeners(host),) or _find_listeners(said):
            if only in {"", str(port)}:
                yield from write_site(scheme, name, port)


def _find_places(said: Mapping[str, Plain]) -> Iterator[tuple[str, Mapping[str, Plain]]]:
    """Yield each host and each of its paths with what it sets for itself."""
    for name, host in _find_below(said, "hosts"):
        yield name, host
        yield from ((f"{name}{path}", options) for path, options in _find_below(host, "paths"))


def _find_below(level: Mapping[str, Plain], key: str) -> Iterator[tuple[str, Mapping[str, Plain]]]:
    """Yield name and options of each host of the top, or of each path of a host."""
    for groups in _flatten(level.get(key, [])):
        for name, options in groups.items() if isinstance(groups, dict) else ():
            yield from ((name, each) for each in _flatten(options) if isinstance(each, dict))


def _find_listeners(level: Mapping[str, Plain]) -> Iterator[tuple[str, int]]:
    """Yield scheme and port of each `listen` of a level."""
    for each in _flatten(level.get("listen", [])):
        options: Mapping[str, Plain] = each if isinstance(each, dict) else {"port": each}
        port = options.get("port")
        if isinstance(port, str) and port.isdigit():
            yield ("https" if "ssl" in options else "http"), int(port)


def _flatten(value: Plain) -> list[Plain]:
    return [each for inner in value for each in _flatten(inner)] if isinstance(value, list) else [value]
