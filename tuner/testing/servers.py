"""The contracts of server adapters, kept with the real programs in a sandbox of this machine.

TestMine = contract_of("mine")  # the name under which the adapter is registered
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import ClassVar, cast

import pytest

from tuner.errors import ConfigRejected, TargetError, UsageError
from tuner.kit.packages import DEBIAN, name_command
from tuner.plugins import make_host, make_installed_server, make_private_server, make_server
from tuner.ports import (
    Facts,
    Host,
    Installation,
    InstalledServer,
    PrivateServer,
    Sandbox,
    Scalar,
    Site,
)
from tuner.space import Space
from tuner.testing.machines import (
    ANSWER_S,
    BareHost,
    CopiedMachine,
    await_effect,
    await_pid,
    check,
    defaults_of,
    ends_of,
    files_open_for_writing,
    open_site,
    overwrite,
    put_in_place,
    spaces_of,
    start,
    succeed,
)

KERNEL = PurePosixPath("/proc/sys")
HOSTILE = ("a\nb", 'a"b', "a}b", "a{b", "a;b")
"""No one value of any directive."""
REFUSED = (ConfigRejected, UsageError)
"""How a setting that no space has is refused: no file can hold it, or it protects the machine."""


def contract_of(name: str) -> type["ServerContract"]:
    """Return the test class of a registered server, with the contracts of the modes that its adapter has."""
    server = make_server(name)
    modes: list[type[ServerContract]] = []
    if isinstance(server, PrivateServer):
        modes.append(PrivateServerContract)
    if isinstance(server, InstalledServer):
        modes.append(InstalledServerContract)
    return type(f"Test {name}", (*modes,) or (ServerContract,), {"name": name})


class ServerContract:
    """What every server keeps to."""

    name: ClassVar[str]
    """Under which it is registered."""

    @pytest.fixture
    def sandbox(self) -> Iterator[Sandbox]:
        with make_host("local").sandbox() as opened:
            yield opened

    @pytest.fixture
    def facts(self, sandbox: Sandbox) -> Facts:
        return make_server(self.name).detect(sandbox)

    def test_it_is_registered_under_its_own_name(self) -> None:
        assert make_server(self.name).name == self.name

    def test_it_is_tuned_in_one_mode_at_least(self) -> None:
        server = make_server(self.name)
        missing = {
            port.__name__: [each for each in dir(port) if each[0] != "_" and not hasattr(server, each)]
            for port in (PrivateServer, InstalledServer)
        }

        assert [] in missing.values(), missing

    def test_it_describes_what_is_installed(self, facts: Facts) -> None:
        assert facts.version, "a space cannot ask for a version"
        assert facts.cores >= 1

    def test_what_is_not_installed_is_answered_with_the_package(self) -> None:
        server = make_server(self.name)
        expected = name_command(DEBIAN, server.package) if server.package else "."

        with pytest.raises(TargetError, match=expected):
            server.detect(BareHost())  # type: ignore[arg-type] # no more is asked of it

    def test_a_quiet_log_has_no_complaints(self) -> None:
        assert make_server(self.name).complaints(b"") == ()


class PrivateServerContract(ServerContract):
    """What a server keeps to that is started as a private instance."""

    @pytest.fixture
    def server(self) -> PrivateServer:
        return make_private_server(self.name)

    @pytest.fixture
    def site(self, sandbox: Sandbox, facts: Facts) -> Site:
        return open_site(sandbox, self.name, facts)

    @pytest.fixture
    def spaces(self, facts: Facts) -> list[Space]:
        return spaces_of(self.name, facts)

    def test_rendering_is_pure(
        self, server: PrivateServer, facts: Facts, site: Site, spaces: list[Space]
    ) -> None:
        for space in spaces:
            config = space.for_server(space.default(), self.name)
            before = dict(config)

            assert server.render(config, site, facts) == server.render(config, site, facts)
            assert config == before

    def test_files_are_written_only_to_the_site_or_to_the_kernel_settings(
        self, server: PrivateServer, facts: Facts, site: Site, spaces: list[Space]
    ) -> None:
        for space in spaces:
            config = space.for_server(space.default(), self.name)

            for path in server.render(config, site, facts):
                assert path.is_relative_to(site.directory) or path.is_relative_to(KERNEL)

    def test_a_configuration_of_nothing_is_a_server_that_answers(
        self, server: PrivateServer, sandbox: Sandbox, facts: Facts, site: Site
    ) -> None:
        put_in_place(server, {}, sandbox, site, facts)
        process = start(server, {}, sandbox, site, facts)

        assert server.effective(sandbox, {}, site, facts, process) == {}

    def test_the_default_of_its_spaces_is_accepted_starts_and_is_in_force(
        self, server: PrivateServer, sandbox: Sandbox, facts: Facts, site: Site, spaces: list[Space]
    ) -> None:
        assert spaces, f"there is no search space for {self.name}"
        for space in spaces:
            config = space.for_server(space.default(), self.name)
            put_in_place(server, config, sandbox, site, facts)
            process = start(server, config, sandbox, site, facts)

            found = server.effective(sandbox, config, site, facts, process)

            assert found, "nothing can be read back"
            assert found == {name: config[name] for name in found}
            assert {name: type(value) for name, value in found.items()} == {
                name: type(config[name]) for name in found
            }

    def test_every_preset_of_its_spaces_is_accepted_starts_and_is_in_force(
        self, server: PrivateServer, facts: Facts, spaces: list[Space]
    ) -> None:
        for space in spaces:
            for preset in space.presets:
                config = space.for_server(space.complete(preset.values), self.name)
                with make_host("local").sandbox() as sandbox:
                    site = open_site(sandbox, "own", facts)
                    put_in_place(server, config, sandbox, site, facts)
                    process = start(server, config, sandbox, site, facts)

                    found = server.effective(sandbox, config, site, facts, process)

                    assert found == {name: config[name] for name in found}, preset.name

    def test_a_running_instance_writes_only_into_its_own_directory(
        self, server: PrivateServer, sandbox: Sandbox, facts: Facts, site: Site
    ) -> None:
        put_in_place(server, {}, sandbox, site, facts)
        process = start(server, {}, sandbox, site, facts)
        if process is None:
            return

        written = list(files_open_for_writing(process.pid))

        assert written, "an error log at least"
        assert [path for path in written if not path.is_relative_to(site.directory)] == []

    def test_it_ends_when_it_is_stopped(
        self, server: PrivateServer, sandbox: Sandbox, facts: Facts, site: Site
    ) -> None:
        put_in_place(server, {}, sandbox, site, facts)
        process = start(server, {}, sandbox, site, facts)
        if process is None:
            return

        process.stop(timeout_s=5)

        assert process.poll() is not None
        listening = sandbox.run(("ss", "-ltnH", f"sport = :{site.port}"), timeout_s=5)
        assert listening.stdout == b""


class InstalledServerContract(ServerContract):
    """What a server keeps to that is tuned as the installed service; its files are changed in copies."""

    @pytest.fixture
    def installed(self) -> InstalledServer:
        return make_installed_server(self.name)

    @pytest.fixture
    def machine(self, sandbox: Sandbox) -> Host:
        """Return a machine like this one, whose files may be changed."""
        return cast("Host", CopiedMachine(sandbox))

    @pytest.fixture
    def installation(self, installed: InstalledServer, machine: Host) -> Installation:
        return installed.find(machine)

    def test_what_is_in_force_changes_no_file(
        self, installed: InstalledServer, installation: Installation
    ) -> None:
        for config in defaults_of(self.name, installation):
            assert installed.rewrite(config, installation) == {}

    def test_no_value_in_force_changes_a_file_whether_a_space_has_it_or_not(
        self, installed: InstalledServer, installation: Installation
    ) -> None:
        accepted: dict[str, Scalar] = {}
        for name, value in installation.facts.current.items():
            with suppress(*REFUSED):
                assert installed.rewrite({name: value}, installation) == {}
                accepted[name] = value

        assert accepted
        assert installed.rewrite(accepted, installation) == {}

    def test_what_is_no_one_value_reaches_no_file(
        self, installed: InstalledServer, installation: Installation
    ) -> None:
        tuned = {name for config in defaults_of(self.name, installation) for name in config}
        for name in tuned | installation.facts.current.keys():
            for value in HOSTILE:
                with pytest.raises(ConfigRejected if name in tuned else REFUSED):
                    installed.rewrite({name: value}, installation)

    def test_the_ends_of_its_spaces_are_accepted_and_found_again(
        self, installed: InstalledServer, installation: Installation, machine: Host
    ) -> None:
        service = installation.service
        if service is None:
            return
        complained = check(installed, installation, machine)
        for space in spaces_of(self.name, installation.facts, is_installed=True):
            for config in ends_of(space, self.name):
                written = installed.rewrite(config, installation)
                assert written == installed.rewrite(config, installation)
                before = {path: machine.read(path) for path in written}
                overwrite(machine, written)

                assert check(installed, installation, machine) <= complained
                after = installed.find(machine)
                assert {name: after.facts.current[name] for name in config} == config
                assert installed.rewrite(config, after) == {}
                overwrite(machine, {path: state.content for path, state in before.items()})

    def test_the_service_starts_is_in_force_and_stops(
        self, installed: InstalledServer, installation: Installation, machine: Host
    ) -> None:
        service = installation.service
        if service is None or service.is_systemd:  # there is no systemd in a sandbox
            return
        read_back: set[str] = set()
        for space in spaces_of(self.name, installation.facts, is_installed=True):
            for config in (space.for_server(space.default(), self.name), *ends_of(space, self.name)):
                overwrite(machine, installed.rewrite(config, installation))
                succeed(machine.run(service.start, timeout_s=ANSWER_S))
                pid = await_pid(machine, service)
                found = await_effect(installed, installation, machine, config, pid)
                for _ in range(2):
                    succeed(machine.run(service.stop, timeout_s=ANSWER_S))

                assert found == {name: config[name] for name in found}
                assert not machine.read(PurePosixPath(f"/proc/{pid}/cmdline")).content
                read_back |= found.keys()
        assert read_back, "nothing can be read back"
