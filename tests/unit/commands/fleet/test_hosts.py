"""What a controller refuses before it measures on several hosts."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.simulation import make_setup, space_of, write_study
from tuner.commands.fleet.hosts import IDENTITY, refuse_unlike
from tuner.errors import UsageError
from tuner.ports import FileState
from tuner.records.machines import HARDWARE
from tuner.space import SpaceFacts, load_space
from tuner.study.file import for_each_target
from tuner.testing.fakes import MemoryHost

NAMES = "ssh://root@web1, ssh://root@web2"


@pytest.fixture
def setups(tmp_path):
    """Return a function that makes the setups of two hosts, the second in some things unlike the first."""

    def make(more="", **unlike):
        settings = write_study(tmp_path, more=f"targets: [{NAMES}]\n{more}")
        first, second = (make_setup(each, space_of("sendfile")) for each in for_each_target(settings))
        return [first, replace(second, fingerprint=replace(second.fingerprint, host="web2", **unlike))]

    return make


def with_identity(setup, machine: bytes, boot: bytes):
    files = dict(zip(IDENTITY, (FileState(content=machine), FileState(content=boot)), strict=True))
    return replace(setup, host=MemoryHost(files=files))


def test_hosts_that_are_alike_may_begin(setups):
    refuse_unlike(setups())


def test_unlike_hardware_is_refused_with_what_differs_and_may_be_modelled(setups):
    with pytest.raises(UsageError, match=r"web2 is unlike .*cores was 2, is 64.*unlike_hosts: model"):
        refuse_unlike(setups(cores=64))
    refuse_unlike(setups("unlike_hosts: model\n", cores=64, kernel="9.9", memory_mib=1))


def test_other_versions_are_refused_in_any_case(setups):
    with pytest.raises(UsageError, match="servers was") as refused:
        refuse_unlike(setups("unlike_hosts: model\n", servers={"nginx": "9.9"}))
    assert "model`" not in str(refused.value)
    assert "servers" not in HARDWARE


def test_another_default_is_refused(setups):
    first, second = setups()
    facts = SpaceFacts(
        names={
            "cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096,
        },
        versions={"nginx": (1, 22, 1)},
    )  # fmt: skip
    refined = ["nginx", {"only": ["sendfile"], "parameters": {"sendfile": {"default": "false"}}}]
    other = replace(second, space=load_space(refined, facts=facts, base=Path("/")))

    with pytest.raises(UsageError, match=r"web2 has another default .*sendfile is False instead of True"):
        refuse_unlike([first, other])


def test_two_names_of_one_machine_are_refused_but_not_clones(setups):
    first, second = setups()
    here = with_identity(first, b"1", b"2")

    with pytest.raises(UsageError, match=r"web1 and ssh://root@web2 are the same machine"):
        refuse_unlike([here, with_identity(second, b"1", b"2")])
    refuse_unlike([here, with_identity(second, b"1", b"3")])
    refuse_unlike([here, with_identity(second, b"", b"2")])
