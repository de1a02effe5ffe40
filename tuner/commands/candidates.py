"""Finds what can be tuned on this machine, and what is there to load it with."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from tuner import plugins
from tuner.deploy.discovery import LOCAL, first_process, read_page, read_pid
from tuner.deploy.readiness import Manner
from tuner.errors import TargetError, UsageError
from tuner.hosts.load_places import find_generators
from tuner.measure.window import example_workload
from tuner.ports import H2, HTTP, Host, Installation, InstalledServer, PrivateServer, Service
from tuner.space import describe_spaces
from tuner.study import Study
from tuner.study.schema import DEFAULT_GENERATOR
from tuner.study.settings import LoadSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A server that is installed here and can be tuned."""

    server: str
    """Name of its adapter."""
    version: tuple[int, ...]
    package: str
    is_running: bool
    """Whether its installed service runs; of one that tuner cannot change where it is, nobody looks."""
    is_private: bool
    """Whether tuner can start an instance of its own."""
    program: str = ""
    build: str = ""
    """Who built it; empty where no table says."""
    service: str = ""
    """What starts it, in words; empty where tuner cannot change it where it is."""
    others: tuple[str, ...] = ()
    """Adapters of the same program that tune it otherwise."""

    @property
    def title(self) -> str:
        """Return its name with its version."""
        return " ".join((self.server, ".".join(map(str, self.version)))).strip()

    @property
    def state(self) -> str:
        """Return what it does now, and how it is tuned."""
        now = "running" if self.is_running else "installed"
        return f"{now}; tuned {'as a private instance' if self.is_private else 'as the installed service'}"


def find_candidates(host: Host) -> tuple[Candidate, ...]:
    """Find the programs that can be tuned here, those whose services run first, each once."""
    found: dict[str, Candidate] = {}
    for name in _tunable():
        candidate = _look_at(host, name)
        if candidate is None:
            continue
        first = found.get(candidate.package)
        found[candidate.package] = _with_other(first, candidate) if first else candidate
    return tuple(sorted(found.values(), key=lambda each: (not each.is_running, each.server)))


def servers_to_tune() -> dict[str, str]:
    """Return package → server of the programs that can be tuned, each once."""
    found: dict[str, str] = {}
    for name in _tunable():
        found.setdefault(plugins.make_server(name).package, name)
    return found


def find_page(host: Host) -> str | None:
    """Return the URL of a page that an installed, running server answers with; None where none does."""
    for name in plugins.adapter_names(plugins.AdapterKind.SERVER):
        installation = _find_installed(host, name)
        if installation is not None and installation.port is not None and _runs(host, installation):
            url = f"http://127.0.0.1:{installation.port}/"
            with suppress(TargetError):
                read_page(host, url, manner=Manner(keepalive=True))
                return url
    return None


def choose_generator(host: Host, shape: LoadSettings) -> str:
    """Return the first load generator that is installed and can send a load, or else the usual one."""
    able = [name for name in list_generators() if _can_send(name, shape)]
    return next((name for name in able if is_installed(host, name)), DEFAULT_GENERATOR)


def find_missing(settings: Study) -> tuple[str, ...]:
    """Return a sentence for each load generator of a study that is not installed here, with its remedy."""
    if settings.load.hosts != (LOCAL,):
        return ()
    host, said = plugins.make_host(LOCAL), []
    for name in dict.fromkeys(each.generator for each in settings.all_loads):
        try:
            find_generators(plugins.make_load_generator(name, **settings.load.options()), {LOCAL: host})
        except TargetError as error:
            said.append(str(error))
    return tuple(said)


def is_installed(host: Host, generator: str) -> bool:
    """Return whether a load generator's program runs here."""
    try:
        find_generators(plugins.make_load_generator(generator), {LOCAL: host})
    except TargetError:
        return False
    return True


def _tunable() -> Iterator[str]:
    """Yield the servers that are programs of a package and have a space."""
    with_space = {row["server"] for row in describe_spaces()}
    for name in plugins.adapter_names(plugins.AdapterKind.SERVER):
        if name in with_space and plugins.make_server(name).package:
            yield name


def _look_at(host: Host, name: str) -> Candidate | None:
    adapter = plugins.make_server(name)
    try:
        facts = adapter.detect(host)
    except (TargetError, UsageError):
        return None
    installation = _find_installed(host, name)
    return Candidate(
        server=name,
        version=facts.version,
        package=adapter.package,
        is_running=installation is not None and _runs(host, installation),
        is_private=isinstance(adapter, PrivateServer),
        program=str(facts.program),
        build=facts.build.name if facts.build else "",
        service=_describe(installation.service) if installation and installation.service else "",
    )


def _with_other(first: Candidate, other: Candidate) -> Candidate:
    """Return a candidate with one more adapter of its program; the one that runs is what counts."""
    kept, added = (other, first) if other.is_running and not first.is_running else (first, other)
    return replace(kept, others=tuple(sorted({*first.others, added.server})))


def _find_installed(host: Host, name: str) -> Installation | None:
    """Return a server as it is installed; None where there is none, or where nobody may look."""
    adapter = plugins.make_server(name)
    if isinstance(adapter, InstalledServer):
        with suppress(TargetError, UsageError):
            return adapter.find(host)
    return None


def _runs(host: Host, installation: Installation) -> bool:
    service = installation.service
    with suppress(TargetError):
        return service is not None and read_pid(host.run_all([first_process(service)])[0]) is not None
    return False


def _describe(service: Service) -> str:
    if service.is_systemd:
        return f"systemd's {service.name}"
    return f"init script {service.name}" if service.stop[0] == "service" else "no service manager starts it"


def list_generators() -> list[str]:
    """Return the load generators: the usual one, packaged ones, those that speak more before others."""
    names = [name for name in plugins.generators_of(HTTP) if _can_send(name, LoadSettings(generator=name))]
    return sorted(
        names,
        key=lambda name: (
            name != DEFAULT_GENERATOR,
            not plugins.make_load_generator(name).package,
            not _can_send(name, LoadSettings(generator=name, protocol=H2)),
            name,
        ),
    )


def _can_send(generator: str, shape: LoadSettings) -> bool:
    try:
        plugins.make_load_generator(generator).command(
            replace(example_workload(shape), rate_rps=shape.rate_rps)
        )
    except UsageError:
        return False
    return True
