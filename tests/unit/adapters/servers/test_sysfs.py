"""Settings under /sys, each of which may be many files."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.space.samples import facts
from tuner.adapters.servers.sysfs import Sysfs
from tuner.errors import ConfigRejected
from tuner.ports import ABSENT, Command, Completed, FileState, Installation
from tuner.space import load_space

PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy{}/scaling_governor"
AVAILABLE = "/sys/devices/system/cpu/cpufreq/policy{}/scaling_available_governors"
CPUS = "/sys/devices/system/cpu/online"
RECEIVING = "/sys/class/net/eth0/queues/rx-{}/rps_cpus"
SENDING = "/sys/class/net/eth0/queues/tx-{}/xps_cpus"
LENGTH = "/sys/class/net/{}/tx_queue_len"
SERVER = {
    CPUS: "0-3",
    PAGES: "always [madvise] never",
    **{GOVERNOR.format(number): "powersave" for number in (0, 2)},
    **{AVAILABLE.format(number): "performance powersave" for number in (0, 2)},
    **{RECEIVING.format(number): "0" for number in (0, 1)},
    **{SENDING.format(number): mask for number, mask in ((0, "5"), (1, "a"))},
    LENGTH.format("eth0"): "1000",
}


class Machine:
    """A machine whose /sys holds these files."""

    name = "machine"

    def __init__(self, files: Mapping[str, str], *, mounts: str = "sysfs /sys sysfs rw 0 0\n") -> None:
        self.files = dict(files)
        self._printed = {
            "sh": "".join(f"{path}\t{text}\n" for path, text in files.items()),
            "cat": mounts,
            "uname": "6.18.44\n",
        }

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        return tuple(self._answer(each.argv[0]) for each in commands)

    def _answer(self, program: str) -> Completed:
        printed = self._printed[program].encode()
        return Completed(argv=(program,), returncode=0, stdout=printed, stderr=b"", duration_s=0.0)

    def read(self, path: PurePosixPath) -> FileState:
        text = self.files.get(str(path))
        return ABSENT if text is None else FileState(content=f"{text}\n".encode())


def find(files: Mapping[str, str] = SERVER, **how: str) -> Installation:
    return Sysfs().find(Machine(files, **how))  # type: ignore[arg-type] # no more is asked of it


def rewritten(config: Mapping[str, object], files: Mapping[str, str] = SERVER) -> dict[str, str]:
    written = Sysfs().rewrite(config, find(files))  # type: ignore[arg-type]
    return {str(path): content.decode().strip() for path, content in written.items()}


def test_one_value_stands_for_the_files_of_all_queues_and_policies():
    assert find().facts.current == {
        "sys.transparent_hugepage.enabled": "madvise",
        "sys.cpufreq.scaling_governor": "powersave",
        "sys.net.rps_cpus": "none",
        "sys.net.xps_cpus": "spread",
        "sys.net.tx_queue_len": 1000,
    }


def test_what_is_there_and_what_is_not_is_named_with_its_place():
    withheld = find().facts.withheld

    assert withheld["sys.net.threaded"] == "this host has no /sys/class/net/*/threaded"
    assert not withheld.keys() & find().facts.current.keys()


def test_every_file_of_a_setting_gets_its_value():
    assert rewritten({"sys.cpufreq.scaling_governor": "performance", "sys.net.rps_cpus": "all"}) == {
        GOVERNOR.format(0): "performance",
        GOVERNOR.format(2): "performance",
        RECEIVING.format(0): "f",
        RECEIVING.format(1): "f",
    }


def test_what_is_in_force_changes_no_file():
    assert rewritten(find().facts.current) == {}


@pytest.mark.parametrize(
    ("cpus", "queues", "masks"),
    [
        ("0-3", 2, ["5", "a"]),
        ("0-3", 4, ["1", "2", "4", "8"]),
        ("0-1", 3, ["1", "2", "1"]),
        ("0,2,32-33", 2, ["1,00000001", "2,00000004"]),
    ],
)
def test_queues_share_the_cpus_that_are_online(cpus: str, queues: int, masks: list[str]):
    there = {CPUS: cpus, **{SENDING.format(number): "0" for number in range(queues)}}

    assert list(rewritten({"sys.net.xps_cpus": "spread"}, there).values()) == masks
    back = {CPUS: cpus, **{SENDING.format(number): mask for number, mask in enumerate(masks)}}
    assert find(back).facts.current["sys.net.xps_cpus"] == "spread"


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("sys.net.rps_cpus", {RECEIVING.format(0): "1", RECEIVING.format(1): "0"}),
        ("sys.net.tx_queue_len", {LENGTH.format("eth1"): "500"}),
        ("sys.cpufreq.scaling_governor", {GOVERNOR.format(2): "performance"}),
    ],
)
def test_what_no_single_value_says_is_left_alone_and_named(name: str, files: dict[str, str]):
    found = find({**SERVER, **files})

    assert name not in found.facts.current
    assert found.facts.withheld[name].startswith("its files have no common value: /sys/")
    with pytest.raises(ConfigRejected, match="its files have no common value"):
        Sysfs().rewrite({name: "all"}, found)


def test_packets_are_not_steered_where_there_is_one_cpu():
    assert "sys.net.rps_cpus" in find({**SERVER, CPUS: "0"}).facts.withheld


def test_what_can_only_be_read_is_left_alone():
    found = find(mounts="sysfs /sys sysfs ro,nosuid 0 0\n")

    assert found.facts.current == {}
    assert (
        found.facts.withheld["sys.transparent_hugepage.enabled"] == "this setting is read-only on this host"
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sys.transparent_hugepage.enabled", "inherit", "'inherit' is none of always, madvise, never"),
        ("sys.transparent_hugepage.enabled", "never\nalways", "is none of"),
        ("sys.cpufreq.scaling_governor", "schedutil", "none of performance, powersave"),
        ("sys.net.tx_queue_len", -1, "'-1' is not a whole number"),
        ("sys.net.tx_queue_len", "10; reboot", "is not a whole number"),
        ("sys.net.rps_cpus", "ff", "none of all, none, spread"),
        ("sys.power.state", "mem", "no setting that tuner changes"),
    ],
)
def test_what_its_files_do_not_take_reaches_none(name: str, value: object, said: str):
    with pytest.raises(ConfigRejected, match=said):
        Sysfs().rewrite({name: value}, find())  # type: ignore[dict-item]


def test_what_is_in_force_is_read_from_all_files():
    found = find()
    machine = Machine({**SERVER, RECEIVING.format(0): "f", RECEIVING.format(1): "f"})
    asked = {"sys.net.rps_cpus": "all", "sys.net.tx_queue_len": 1000}

    assert Sysfs().in_force(machine, machine, asked, found, 0) == asked  # type: ignore[arg-type]
    machine.files[RECEIVING.format(1)] = "1"
    read = Sysfs().in_force(machine, machine, asked, found, 0)  # type: ignore[arg-type]
    assert read["sys.net.rps_cpus"] == f"{RECEIVING.format(0)} f, {RECEIVING.format(1)} 1"


def test_the_space_is_of_a_machine_and_its_risks_are_named():
    found = find().facts
    host = facts(
        current=found.current, withheld=found.withheld, sandbox=False, installed=True, loopback=False
    )

    space = load_space(["sysfs"], facts=host, base=Path("/"))

    assert {each.parameter for each in space.dimensions} == found.current.keys()
    assert space.left_out["sys.net.threaded"] == found.withheld["sys.net.threaded"]
    assert load_space(["sysfs"], facts=facts(), base=Path("/")).dimensions == ()


def test_a_machine_without_any_of_it_has_nothing_to_tune():
    assert find({CPUS: "0-1"}).facts.current == {}
