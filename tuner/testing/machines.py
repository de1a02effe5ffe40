"""Machines of the servers' contract: one with nothing installed, private sites, a copy of this one."""

import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tuner.deploy.readiness import await_listener
from tuner.errors import TargetError
from tuner.plugins import make_host
from tuner.ports import (
    ABSENT,
    H2C,
    HTTP1,
    BackendServer,
    Command,
    Completed,
    Config,
    Facts,
    FileReader,
    Files,
    FileState,
    Host,
    Installation,
    InstalledServer,
    PrivateServer,
    Process,
    Sandbox,
    Scalar,
    Server,
    Service,
    Site,
    Upstream,
)
from tuner.space import Space, SpaceFacts, describe_spaces, load_space

PAGE = b"<!DOCTYPE html><title>contract</title>\n"
CHANGED = ("/etc", "/run", "/var")
"""What an installed service reads and writes: copies in the sandbox of its tests."""
EMPTY_LOGS = "cd /var && cp -a --attributes-only log log-empty && rm -rf log && mv log-empty log"
"""A service that opens a log copies it into the sandbox first, and the machine's may be too large."""
ANSWER_S = 20.0
SETTLE_S = 5.0
PAUSE_S = 0.05


class BareHost:
    """A host on which nothing is installed."""

    name = "bare"

    def run(self, argv: Sequence[str], **_options: object) -> Completed:
        if argv[0] == "find":
            return Completed(argv=tuple(argv), returncode=1, stdout=b"", stderr=b"", duration_s=0.0)
        raise TargetError(f"bare: {argv[0]}: command not found")

    def read(self, _path: PurePosixPath) -> FileState:
        return ABSENT


class CopiedMachine:
    """This machine with copies of what services read and write, in the namespaces of a sandbox.

    Commands enter from outside: the sandbox's own programs have too few rights to stop a service. Files are
    read from inside, so that links lead to the copies.
    """

    name = "copy"

    def __init__(self, sandbox: Sandbox) -> None:
        self._local = make_host("local")
        self._enter = ("nsenter", f"--target={sandbox.pid}", "--mount", "--pid", "--net", "--ipc", "--")
        for place in CHANGED:
            upper, work = (str(sandbox.directory / f"{kind}{place}") for kind in ("upper", "work"))
            succeed(self.run(("mkdir", "-p", upper, work), timeout_s=ANSWER_S))
            options = f"lowerdir={place},upperdir={upper},workdir={work}"
            mount = ("mount", "-t", "overlay", "-o", options, "overlay", place)
            succeed(self.run(mount, timeout_s=ANSWER_S))
        succeed(self.run(("sh", "-c", EMPTY_LOGS), timeout_s=ANSWER_S))
        succeed(self.run(("mkdir", "-p", "/run/lock"), timeout_s=ANSWER_S))

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"", **_: object) -> Completed:
        return self._local.run((*self._enter, *argv), timeout_s=timeout_s, stdin=stdin)

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        ended: list[Completed] = []
        for each in commands:
            ended.append(self.run(each.argv, timeout_s=each.timeout_s, stdin=each.stdin))
            if ended[-1].returncode != 0 and not each.may_fail:
                break
        return tuple(ended)

    def read(self, path: PurePosixPath) -> FileState:
        found = self.run(("cat", "--", str(path)), timeout_s=ANSWER_S)
        return FileState(content=found.stdout) if found.returncode == 0 else ABSENT

    def look(self, _paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        return self


def await_pid(machine: Host, service: Service) -> int:
    """Wait until a service has written its process id."""
    deadline_s = time.monotonic() + ANSWER_S
    while not (content := (machine.read(service.pid_file).content or b"").strip()):
        assert time.monotonic() < deadline_s, f"{service.pid_file} stays empty"
        time.sleep(PAUSE_S)
    return int(content)


def await_effect(
    server: InstalledServer, installation: Installation, machine: Host, config: Config, pid: int
) -> Config:
    """Read back what is active, again for a moment while it is not what was asked."""
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        found = server.in_force(machine, machine, config, installation, pid)
        is_as_asked = found == {name: config[name] for name in found}
        if is_as_asked or time.monotonic() > deadline_s:
            return found
        time.sleep(PAUSE_S)


def open_site(sandbox: Sandbox, name: str, facts: Facts) -> Site:
    """Return a site in the sandbox, with one page; a server that needs another one behind it gets one."""
    site = Site(directory=sandbox.directory / name, document_root=sandbox.directory / "www")
    sandbox.write(site.document_root / "index.html", FileState(content=PAGE, mode=0o644))
    if not facts.needs_backend:
        return site
    behind = Upstream(port=site.port + 1)
    served = ("--bind", "127.0.0.1", "--directory", str(site.document_root))
    sandbox.start((sys.executable, "-m", "http.server", str(behind.port), *served))
    _await_listener(sandbox, behind)
    return replace(site, backend=behind)


def spaces_of(name: str, facts: Facts, *, is_installed: bool = False) -> list[Space]:
    """Load every space of this server of which something can be tuned here."""
    names: dict[str, Scalar] = {
        "cores": os.cpu_count() or 1,
        "memory_mib": 4096,
        "connections": 100,
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "somaxconn": 4096,
    }
    known = SpaceFacts(
        names=names, versions={name: facts.version}, current=facts.current, withheld=facts.withheld,
        exists=os.path.exists, sandbox=not is_installed, installed=is_installed,
    )  # fmt: skip
    own = [row["name"] for row in describe_spaces() if row["server"] == name]
    loaded = (load_space([each], facts=known, base=Path()) for each in own)
    return [space for space in loaded if space.dimensions]


def defaults_of(name: str, installation: Installation) -> list[Config]:
    """Return what is active, as every space of this server has it."""
    known = installation.facts.current
    spaces = spaces_of(name, installation.facts, is_installed=True)
    defaults = [space.for_server(space.default(), name) for space in spaces]
    return [{each: config[each] for each in config if each in known} for config in defaults]


def ends_of(space: Space, server: str) -> Iterator[Config]:
    """Yield the configurations at the lowest and at the highest values of all parameters."""
    for is_high in (False, True):
        point = {
            each.name: each.choices[-is_high] if each.choices else (each.high if is_high else each.low)
            for each in space.dimensions
        }
        config = space.decode(point)
        if not space.violations(config):
            yield space.for_server(config, server)


def put_in_place(server: PrivateServer, config: Config, sandbox: Sandbox, site: Site, facts: Facts) -> None:
    """Write a private instance's files and let its own check accept them."""
    for path, content in server.render(config, site, facts).items():
        sandbox.write(path, FileState(content=content))
    command = server.check(site, facts)
    if command is not None:
        checked = sandbox.run(command, timeout_s=ANSWER_S)
        assert (checked.returncode, server.refusals(checked)) == (0, ()), checked.stderr.decode()


def start(
    server: PrivateServer, config: Config, sandbox: Sandbox, site: Site, facts: Facts
) -> Process | None:
    """Start a private instance and wait until it serves the page, or listens; None for settings."""
    command = server.start(site, facts)
    if command is None:
        return None
    process = sandbox.start(command, open_files=server.needs(config).open_files)
    if isinstance(server, BackendServer):
        _await_listener(sandbox, server.upstream(config, site))
        return process

    def check_alive() -> None:
        assert process.poll() is None, process.output().decode()

    await_listener(sandbox, Upstream(port=site.port), timeout_s=ANSWER_S, check_alive=check_alive)
    # Some listen anew while they start, and reset the connections that came to the sockets of before.
    answer = sandbox.run(_ask(site), timeout_s=ANSWER_S)
    assert answer.stdout == PAGE, (answer.stderr.decode(), process.output().decode())
    return process


def _ask(site: Site) -> tuple[str, ...]:
    """Return the command that asks a private instance for its page, over what it speaks."""
    again = ("curl", "-sS", "--retry", "10", "--retry-delay", "1", "--retry-all-errors", "--max-time", "10")
    place = f"127.0.0.1:{site.port}/index.html"
    if site.certificate is not None:
        spoken = "--http1.1" if site.protocol == HTTP1 else "--http2"
        return (*again, spoken, "--cacert", str(site.certificate.file), f"https://{place}")
    return (*again, *(("--http2-prior-knowledge",) if site.protocol == H2C else ()), f"http://{place}")


def _await_listener(sandbox: Sandbox, where: Upstream) -> None:
    """Wait until a server listens that is not asked for the page itself."""
    await_listener(sandbox, where, timeout_s=ANSWER_S, check_alive=lambda: None)


def files_open_for_writing(pid: int) -> Iterator[PurePosixPath]:
    """Yield what a process and its children have open for writing."""
    process = Path(f"/proc/{pid}")
    for descriptor in (process / "fd").iterdir():
        try:
            target = str(descriptor.readlink())
            flags = (process / "fdinfo" / descriptor.name).read_text().split("flags:")[1].split()[0]
        except FileNotFoundError:  # closed by now
            continue
        is_written = int(flags, 8) & (os.O_WRONLY | os.O_RDWR)
        if (
            target.startswith("/")
            and not target.startswith(("/dev/null", "/dev/zero", "/memfd:"))
            and is_written
        ):
            yield PurePosixPath(target)
    for child in (process / "task" / str(pid) / "children").read_text().split():
        yield from files_open_for_writing(int(child))


def check(server: Server, installation: Installation, machine: Host) -> set[str]:
    """Let the installed service's own check accept the files; return what it complains of all the same."""
    if installation.service is None or installation.service.check is None:
        return set()
    checked = machine.run(installation.service.check, timeout_s=ANSWER_S)
    succeed(checked)
    return set(server.refusals(checked))


def overwrite(machine: Host, files: Files | dict[PurePosixPath, bytes | None]) -> None:
    """Write or remove files of an installed service where it looks for them."""
    for path, content in files.items():
        argv = ("rm", "--", str(path)) if content is None else ("tee", "--", str(path))
        succeed(machine.run(argv, timeout_s=ANSWER_S, stdin=content or b""))


def succeed(completed: Completed) -> None:
    """Raise AssertionError unless a command succeeded."""
    assert completed.returncode == 0, (completed.argv, completed.stderr.decode(errors="replace"))
