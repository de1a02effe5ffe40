"""A whole machine's kernel is tuned beside its server over SSH, and is as before afterwards.

The keys are copies of this machine's, mounted over those of a test host: nothing of this machine changes.
"""

from pathlib import Path

from benchmarks.faults.look import look_at
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.study import load_study

STUDY = """\
study: machine
servers: [nginx, sysctl]
space: [nginx, sysctl-net, sysctl-vm, {{allow: [risky]}}]
target: {{host: "{url}", mode: managed, watchdog_s: 10}}
load: {{path: "http://{address}/"}}
"""
CHANGES = {"vm.vfs_cache_pressure": 50, "vm.dirty_ratio": 40, "vm.min_free_kbytes": 70000}
KEYS = "/proc/sys/vm"


def give_own_keys(host: TestHost) -> None:
    """Mount copies of the keys of memory over them, and let the host be no container, which shares them."""
    (host.root / ".dockerenv").unlink(missing_ok=True)
    host.run(
        ["sh", "-ec", f"mkdir /run/vm; cd {KEYS}; for key in *; do cat $key > /run/vm/$key || true; done"]
    )
    host.run(["mount", "--bind", "/run/vm", KEYS])


def read_keys(host: TestHost) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((host.root / "run/vm").iterdir())}


def test_memory_of_a_machine_is_set_read_back_and_given_back(own_bed: Testbed, tmp_path: Path):
    host = own_bed.add_host("web")
    host.install_nginx()
    give_own_keys(host)
    before, keys = look_at(host), read_keys(host)
    path = tmp_path / "machine.yaml"
    path.write_text(STUDY.format(url=host.ssh_url, address=host.address))
    found = find_target(load_study(path), plugins.make_host(host.ssh_url))

    with found.target.hold(print):
        with found.target.deploy(found.space.complete(CHANGES)) as deployment:
            assert {name: deployment.effective[name] for name in CHANGES} == CHANGES
            changed = {name.removeprefix("vm."): b"%d\n" % value for name, value in CHANGES.items()}
            assert read_keys(host) == keys | changed
        with found.target.deploy(found.space.default()):
            assert read_keys(host) == keys

    assert read_keys(host) == keys
    assert look_at(host) == before


def test_a_key_whose_twin_is_set_is_named_and_left_alone(own_bed: Testbed, tmp_path: Path):
    host = own_bed.add_host("web")
    host.install_nginx()
    give_own_keys(host)
    (host.root / "run/vm/dirty_bytes").write_text("100000000\n")
    (host.root / "run/vm/dirty_ratio").write_text("0\n")
    path = tmp_path / "machine.yaml"
    path.write_text(STUDY.format(url=host.ssh_url, address=host.address))

    space = find_target(load_study(path), plugins.make_host(host.ssh_url)).space

    assert "sets vm.dirty_bytes instead" in space.left_out["vm.dirty_ratio"]
    assert "vm.dirty_ratio" not in {each.parameter for each in space.dimensions}
