"""What every registered server adapter keeps to, with the real programs in a sandbox."""

import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError, UsageError
from tuner.plugins import Kind, adapter_names, make_installed_server, make_private_server, make_server
from tuner.ports import (
    ABSENT,
    Completed,
    Config,
    Facts,
    FileState,
    InstalledServer,
    PrivateServer,
    Process,
    Sandbox,
    Scalar,
    Site,
)
from tuner.space import Space, SpaceFacts, available_spaces, describe_space, load_space

PAGE = b"<!DOCTYPE html><title>contract</title>\n"
WRITING = os.O_WRONLY | os.O_RDWR
SETTINGS = PurePosixPath("/proc/sys")
PRIVATE = [name for name in adapter_names(Kind.SERVER) if isinstance(make_server(name), PrivateServer)]
INSTALLED = [name for name in adapter_names(Kind.SERVER) if isinstance(make_server(name), InstalledServer)]


class BareHost:
    """A host on which nothing is installed."""

    name = "bare"

    def run(self, argv: Sequence[str], **_options: object) -> Completed:
        if argv[0] == "find":
            return Completed(argv=tuple(argv), returncode=1, stdout=b"", stderr=b"", duration_s=0.0)
        message = f"bare: {argv[0]}: command not found"
        raise TargetError(message)

    def read(self, _path: PurePosixPath) -> FileState:
        return ABSENT


@pytest.fixture(params=PRIVATE)
def server(request: pytest.FixtureRequest) -> PrivateServer:
    return make_private_server(request.param)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        yield opened


@pytest.fixture
def facts(server: PrivateServer, sandbox: Sandbox) -> Facts:
    return server.detect(sandbox)


@pytest.fixture
def site(server: PrivateServer, sandbox: Sandbox) -> Site:
    opened = Site(directory=sandbox.directory / server.name, document_root=sandbox.directory / "www")
    sandbox.write(opened.document_root / "index.html", FileState(content=PAGE, mode=0o644))
    return opened


def spaces_of(server: PrivateServer, facts: Facts) -> list[Space]:
    """Load every built-in space whose settings are this server's."""
    names: dict[str, Scalar] = {
        "cores": os.cpu_count() or 1,
        "memory_mib": 4096,
        "connections": 100,
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "somaxconn": 4096,
    }
    known = SpaceFacts(
        names=names, versions={server.name: facts.version}, current=facts.current, exists=os.path.exists
    )
    own = [name for name in available_spaces() if describe_space(name)[0]["server"] == server.name]
    return [load_space([name], facts=known, base=Path()) for name in own]


def put_in_place(server: PrivateServer, config: Config, sandbox: Sandbox, site: Site, facts: Facts) -> None:
    for path, content in server.render(config, site, facts).items():
        sandbox.write(path, FileState(content=content))
    command = server.check(site, facts)
    if command is not None:
        checked = sandbox.run(command, timeout_s=10)
        assert (checked.returncode, server.refusals(checked)) == (0, ()), checked.stderr.decode()


def start(
    server: PrivateServer, config: Config, sandbox: Sandbox, site: Site, facts: Facts
) -> Process | None:
    command = server.start(site, facts)
    if command is None:
        return None
    process = sandbox.start(command, open_files=server.needs(config).open_files)
    url = f"http://127.0.0.1:{site.port}/index.html"
    again = ("--retry", "50", "--retry-delay", "0", "--retry-connrefused", "--max-time", "10")
    answer = sandbox.run(("curl", "-s", *again, url), timeout_s=20)
    assert answer.stdout == PAGE, process.output().decode()
    return process


def test_it_describes_what_is_installed(facts: Facts):
    assert facts.version, "a space cannot ask for a version"
    assert facts.cores >= 1


@pytest.mark.parametrize("name", adapter_names(Kind.SERVER))
def test_what_is_not_installed_is_answered_with_the_package(name: str):
    server = make_server(name)
    expected = f"apt-get install {server.package}" if server.package else "."

    with pytest.raises(TargetError, match=expected):
        server.detect(BareHost())


def test_rendering_is_pure(server: PrivateServer, facts: Facts, site: Site):
    for space in spaces_of(server, facts):
        config = space.for_server(space.default(), server.name)
        before = dict(config)

        assert server.render(config, site, facts) == server.render(config, site, facts)
        assert config == before


def test_files_are_written_only_to_the_site_or_to_the_kernel_settings(
    server: PrivateServer, facts: Facts, site: Site
):
    for space in spaces_of(server, facts):
        config = space.for_server(space.default(), server.name)

        for path in server.render(config, site, facts):
            assert path.is_relative_to(site.directory) or path.is_relative_to(SETTINGS)


def test_a_configuration_of_nothing_is_a_server_that_answers(
    server: PrivateServer, sandbox: Sandbox, facts: Facts, site: Site
):
    put_in_place(server, {}, sandbox, site, facts)
    process = start(server, {}, sandbox, site, facts)

    assert server.effective(sandbox, {}, site, facts, process) == {}


def test_the_default_of_its_spaces_is_accepted_starts_and_is_in_force(
    server: PrivateServer, sandbox: Sandbox, facts: Facts, site: Site
):
    for space in spaces_of(server, facts):
        config = space.for_server(space.default(), server.name)
        put_in_place(server, config, sandbox, site, facts)
        process = start(server, config, sandbox, site, facts)

        found = server.effective(sandbox, config, site, facts, process)

        assert found, "nothing can be read back"
        assert found == {name: config[name] for name in found}
        assert {name: type(value) for name, value in found.items()} == {
            name: type(config[name]) for name in found
        }


def test_every_preset_of_its_spaces_is_accepted_starts_and_is_in_force(server: PrivateServer, facts: Facts):
    for space in spaces_of(server, facts):
        for preset in space.presets:
            config = space.for_server(space.complete(preset.values), server.name)
            with LocalHost().sandbox() as sandbox:
                site = Site(directory=sandbox.directory / "own", document_root=sandbox.directory / "www")
                sandbox.write(site.document_root / "index.html", FileState(content=PAGE, mode=0o644))
                put_in_place(server, config, sandbox, site, facts)
                process = start(server, config, sandbox, site, facts)

                found = server.effective(sandbox, config, site, facts, process)

                assert found == {name: config[name] for name in found}, preset.name


def test_a_running_instance_writes_only_into_its_own_directory(
    server: PrivateServer, sandbox: Sandbox, facts: Facts, site: Site
):
    put_in_place(server, {}, sandbox, site, facts)
    process = start(server, {}, sandbox, site, facts)
    if process is None:
        return

    written = list(_files_open_for_writing(process.pid))

    assert written, "an access log at least"
    assert [path for path in written if not path.is_relative_to(site.directory)] == []


def _files_open_for_writing(pid: int) -> Iterator[PurePosixPath]:
    process = Path(f"/proc/{pid}")
    for descriptor in (process / "fd").iterdir():
        try:
            target = str(descriptor.readlink())
            flags = (process / "fdinfo" / descriptor.name).read_text().split("flags:")[1].split()[0]
        except FileNotFoundError:  # closed by now
            continue
        if (
            target.startswith("/")
            and not target.startswith(("/dev/null", "/dev/zero"))
            and int(flags, 8) & WRITING
        ):
            yield PurePosixPath(target)
    for child in (process / "task" / str(pid) / "children").read_text().split():
        yield from _files_open_for_writing(int(child))


def test_it_ends_when_it_is_stopped(server: PrivateServer, sandbox: Sandbox, facts: Facts, site: Site):
    put_in_place(server, {}, sandbox, site, facts)
    process = start(server, {}, sandbox, site, facts)
    if process is None:
        return

    process.stop(timeout_s=5)

    assert process.poll() is not None
    listening = sandbox.run(("ss", "-ltnH", f"sport = :{site.port}"), timeout_s=5)
    assert listening.stdout == b""


@pytest.mark.parametrize("name", adapter_names(Kind.SERVER))
def test_a_quiet_log_has_no_complaints(name: str):
    assert make_server(name).complaints(b"") == ()


@pytest.mark.parametrize("name", sorted(set(adapter_names(Kind.SERVER)) - set(PRIVATE)))
def test_a_private_instance_of_what_has_none_is_refused(name: str):
    with pytest.raises(UsageError, match="`mode: managed` under `target:`"):
        make_private_server(name)


@pytest.mark.parametrize("name", adapter_names(Kind.SERVER))
def test_every_server_can_be_tuned_in_some_way(name: str):
    assert isinstance(make_server(name), PrivateServer | InstalledServer)


@pytest.mark.parametrize("name", INSTALLED)
def test_the_installed_configuration_changes_no_file(name: str):
    server = make_installed_server(name)
    found = server.find(LocalHost())

    assert found.facts.current, "nothing is known to be in force"
    assert server.rewrite({}, found) == {}
