import resource
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tests.fakes import MemoryHost, completed
from tests.unit.core.bench import ScriptedGenerator
from tests.unit.core.simulation import make_rig, space_of, write_study
from tuner.errors import TargetError, UsageError
from tuner.ports import FileState
from tuner.rig import (
    CAP_SYS_RESOURCE,
    _refuse_strangers,
    _somaxconn,
    find_generator,
    memory_mib,
    open_files_max,
)
from tuner.settings import LoadSettings

STATUS = PurePosixPath("/proc/self/status")
NR_OPEN = PurePosixPath("/proc/sys/fs/nr_open")
MAY_RAISE = 1 << CAP_SYS_RESOURCE


def host_with(capabilities, nr_open=b"1000000\n"):
    files = {STATUS: FileState(content=b"Name:\ttuner\nCapEff:\t%016x\n" % capabilities)}
    if nr_open:
        files[NR_OPEN] = FileState(content=nr_open)
    return MemoryHost(files=files)


@pytest.fixture
def hard_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return hard


def test_whoever_may_raise_limits_can_open_as_many_files_as_the_kernel_allows():
    assert open_files_max(host_with(MAY_RAISE)) == 1_000_000
    assert open_files_max(host_with(MAY_RAISE | 1, nr_open=b"")) == 1_048_576


def test_others_can_open_as_many_files_as_their_hard_limit(hard_limit):
    expected = 10**9 if hard_limit == resource.RLIM_INFINITY else min(hard_limit, 10**9)

    assert open_files_max(host_with(0, nr_open=b"1000000000")) == expected


def test_a_new_network_namespace_is_asked_for_its_own_limit():
    host = MemoryHost(files={PurePosixPath("/proc/sys/net/core/somaxconn"): FileState(content=b"128\n")})

    assert _somaxconn(host) == 128
    assert len(host.sandboxes) == 1
    assert _somaxconn(MemoryHost()) == 4096


def test_this_machine_has_memory():
    assert memory_mib() > 100


class NamedGenerator(ScriptedGenerator):
    """A load generator that says its version."""

    name = "named"
    package = "named-tools"

    def version_command(self):
        return ("named", "-V")

    def read_version(self, printed):
        return printed.stdout.decode().removeprefix("named ")


def test_the_version_of_a_load_generator_is_what_it_prints():
    host = MemoryHost(commands={"named": lambda _host, argv, _stdin: completed(argv, stdout=b"named 4.2")})

    assert find_generator(NamedGenerator(), host) == "4.2"


def test_a_load_generator_without_a_version_has_none():
    assert find_generator(ScriptedGenerator(), MemoryHost()) == ""


def test_a_missing_load_generator_is_named_with_its_package():
    with pytest.raises(TargetError, match=r"named is not installed .* apt-get install named-tools"):
        find_generator(NamedGenerator(), MemoryHost())


def test_a_parameter_whose_server_is_not_in_the_study_is_refused(tmp_path):
    settings = replace(write_study(tmp_path), servers=("apache",))

    with pytest.raises(UsageError, match=r"belongs to the server 'nginx', which is not among `servers:`"):
        _refuse_strangers(settings, space_of("sendfile"))


def test_a_rig_knows_its_study_and_its_load(tmp_path):
    settings = write_study(tmp_path)

    rig = make_rig(settings, space_of("sendfile"))

    assert rig.settings.load == LoadSettings()
    assert {parameter.name for parameter in rig.space.parameters} >= {"sendfile"}
