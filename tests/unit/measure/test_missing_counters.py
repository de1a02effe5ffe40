import dataclasses
import re

import pytest

from tests.unit.measure.golden import GoldenWindow, Moment
from tuner.errors import TargetError
from tuner.measure.counters import difference, take


def test_a_kernel_without_pressure_has_no_such_names():
    window = GoldenWindow("loaded")
    for moment in (window.before, window.after):
        for resource in ("cpu", "memory", "io"):
            del moment.files[f"/proc/pressure/{resource}"]

    assert not [name for name in window.counters() if name.startswith("pressure")]


def test_a_sandbox_that_ended_has_no_network_any_more():
    window = GoldenWindow("loaded")
    for name in ("netstat", "snmp", "sockstat"):
        del window.after.files[f"/proc/28760/net/{name}"]

    counted = window.counters()

    assert "listen_overflows" not in counted
    assert "time_wait" not in counted
    assert counted["server_cpu_s"] > 1


def test_a_server_that_ended_has_used_no_negative_cpu():
    window = GoldenWindow("loaded")
    for path in list(window.after.files):
        if re.match(r"/proc/(28762|28764|28765)/", path):
            del window.after.files[path]

    counted = window.counters()

    assert counted["server_cpu_s"] == 0
    assert counted["server_processes"] == 0
    assert counted["server_exits"] == 3


def test_a_target_that_was_restarted_is_refused():
    window = GoldenWindow("loaded")
    before, after = window.before.take(), window.after.take()
    restarted = dataclasses.replace(after, boot_id="0d3f")

    with pytest.raises(TargetError, match="the target was restarted during a window"):
        difference(before, restarted)


def test_a_host_without_proc_is_refused_with_what_is_missing():
    moment = Moment("loaded.before")
    del moment.files["/proc/stat"]

    with pytest.raises(TargetError, match=re.escape("/proc/stat cannot be read on the target")):
        moment.take()


def test_a_kernel_that_lists_no_children_is_refused():
    moment = Moment("loaded.before")
    for path in [path for path in moment.files if path.endswith("/children")]:
        del moment.files[path]

    with pytest.raises(TargetError, match="CONFIG_PROC_CHILDREN"):
        moment.take()


def test_a_process_that_ends_while_it_is_looked_at_has_no_children():
    moment = Moment("loaded.before")
    del moment.files["/proc/28762/task/28762/children"]

    assert moment.take().groups["server"]


def test_iowait_that_falls_counts_as_none():
    window = GoldenWindow("loaded")
    window.after.write_columns("cpu0", iowait=-0.05)

    assert window.counters()["iowait_s"] == 0


def test_a_name_with_blanks_and_parentheses_is_only_a_name():
    moment = Moment("loaded.before")
    moment.replace("/proc/28764/stat", "(nginx)", "(ngi) nx) S 1 ()")

    taken = take(moment.host(), namespace_pid=28760, groups={"server": [28762]})

    assert {process.name for process in taken.groups["server"].values()} == {"nginx", "ngi) nx) S 1 ("}
