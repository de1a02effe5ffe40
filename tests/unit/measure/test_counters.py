import dataclasses
import re
import subprocess
import sys

import pytest

from tests.unit.measure.golden import GoldenWindow, Moment
from tuner.measure import counters as counters_module
from tuner.measure.counters import difference


def near(value: float, *, within: float = 1e-6) -> object:
    return pytest.approx(value, abs=within)


def test_busy_time_is_what_is_neither_idle_nor_waiting_nor_stolen():
    counted = GoldenWindow("loaded").counters()

    assert counted["elapsed_s"] == near(2.04813)
    assert counted["idle_s"] == near(0.83)
    assert counted["steal_s"] == near(0.02)
    assert counted["busy_s"] == near(2 * 2.04813 - 0.83 - 0.02)


def test_every_cpu_is_counted_by_itself_and_in_the_sum():
    counted = GoldenWindow("loaded").counters()

    assert counted["cpus"] == 2
    assert [counted[f"cpu{cpu}_softirq_s"] for cpu in (0, 1)] == [near(0.23), near(0.87)]
    assert counted["softirq_s"] == near(1.10)
    assert counted["softirq_share"] == near(1.10 / (0.29 + 1.73 + 1.10), within=0.01)


def test_a_window_on_a_crowded_machine_shows_what_the_hypervisor_took():
    assert GoldenWindow("stolen").counters()["steal_share"] == near(0.28 / (2 * 2.060144))
    assert GoldenWindow("loaded").counters()["steal_share"] == near(0.02 / (2 * 2.04813))


def test_cpu_of_the_server_is_that_of_all_its_processes():
    assert GoldenWindow("loaded").counters()["server_cpu_s"] == near(0.55 + 0.54)


def test_cpu_of_the_generator_is_not_counted_again_in_the_tuner_that_waited_for_it():
    counted = GoldenWindow("loaded").counters()

    assert counted["generator_cpu_s"] == near(1.969231)
    assert counted["tuner_cpu_s"] == near(1.97 - 1.969231)


def test_foreign_cpu_is_what_nobody_of_ours_used():
    loaded, stolen = GoldenWindow("loaded").counters(), GoldenWindow("stolen").counters()

    assert loaded["foreign_cpu_s"] == near(3.24626 - 1.09 - 1.97 - 0.03)
    assert stolen["foreign_cpu_share"] > 1
    assert loaded["foreign_cpu_share"] == near(loaded["foreign_cpu_s"] / 2.04813)


def test_foreign_cpu_is_the_same_whether_the_generators_share_is_told_apart_or_not():
    window = GoldenWindow("loaded")
    before, after = window.before.take(), window.after.take()

    told = difference(before, after, generator_cpu_s=1.9)
    other = difference(before, after, generator_cpu_s=0.0)

    assert told["foreign_cpu_s"] == near(other["foreign_cpu_s"])
    assert told["tuner_cpu_s"] == near(other["tuner_cpu_s"] - 1.9)


def test_a_generator_that_nobody_of_ours_waited_for_is_not_foreign():
    window = GoldenWindow("stolen")
    before, after = window.before.take(), window.after.take()

    without = difference(before, after, generator_cpu_s=0.0, waited_for_by=None)
    with_it = difference(before, after, generator_cpu_s=0.5, waited_for_by=None)

    assert with_it["foreign_cpu_s"] == near(without["foreign_cpu_s"] - 0.5)
    assert with_it["tuner_cpu_s"] == near(without["tuner_cpu_s"])


def test_rounding_of_proc_is_known():
    # Two workers of nginx with two numbers each, two of the tuner's for its children, one of each ksoftirqd.
    assert GoldenWindow("loaded").counters()["foreign_cpu_error_s"] == near(0.01 * (8 / 6) ** 0.5)


def test_a_worker_that_was_replaced_is_counted_once_in_the_parent_that_waited_for_it():
    window = GoldenWindow("loaded")
    master, worker = window.before.pids("server")[0], 28764
    for path in (f"/proc/{worker}/stat", f"/proc/{worker}/status", f"/proc/{worker}/task/{worker}/children"):
        del window.after.files[path]
    stat = f"/proc/{master}/stat"
    window.after.files[f"/proc/{master}/task/{master}/children"] = "28765\n"
    # The master waited for it after 0.80 s more: user and system of children are fields 16 and 17.
    words = window.after.files[stat].split()
    words[15], words[16] = "30", "78"
    window.after.files[stat] = " ".join(words)

    counted = window.counters()

    assert counted["server_cpu_s"] == near(0.55 + (0.30 + 0.78) - 0.28)
    assert counted["server_exits"] == 1
    assert counted["server_processes"] == 2


def test_a_kernel_thread_that_ended_takes_nothing_away():
    window = GoldenWindow("loaded")
    del window.after.files["/proc/50/stat"]

    assert window.counters()["interrupts_cpu_s"] == near(0.03)


def test_context_switches_of_the_server_are_those_of_its_processes():
    counted = GoldenWindow("loaded").counters()

    assert counted["server_switches_voluntary"] == (12804 - 4685) + (12517 - 4446)
    assert counted["server_switches_involuntary"] == (879 - 302) + (928 - 335)
    assert counted["context_switches"] == 11122471 - 11090268


def test_context_switches_of_a_server_with_threads_are_left_out():
    window = GoldenWindow("loaded")
    stat = "/proc/28764/stat"
    words = window.after.files[stat].split()
    words[19] = "26"
    window.after.files[stat] = " ".join(words)

    counted = window.counters()

    assert "server_switches_voluntary" not in counted
    assert counted["server_threads"] == 1 + 1 + 26


def test_memory_of_the_server_is_in_bytes():
    assert GoldenWindow("loaded").counters()["server_rss_bytes"] == (6792 + 2 * 4568) * 1024


def test_network_counters_are_those_of_the_sandbox():
    counted = GoldenWindow("loaded").counters()

    assert counted["passive_opens"] == 37639 - 13379
    assert counted["segments_sent"] == 376056 - 133634
    assert counted["resets_sent"] == 61 - 34
    assert counted["listen_overflows"] == 0
    assert (counted["time_wait_before"], counted["time_wait"]) == (9204, 13415)


def test_packets_are_counted_over_all_cpus():
    counted = GoldenWindow("stolen").counters()

    assert counted["packets"] == (0x0144197F - 0x0143A569) + (0x016FC037 - 0x016ED883)
    assert counted["packets_squeezed"] == 0x1B - 0x19


def test_pressure_is_in_seconds():
    counted = GoldenWindow("stolen").counters()

    assert counted["pressure_cpu_some_s"] == near(1.933458)
    assert counted["pressure_io_full_s"] == near(0.003364)


def test_a_clock_that_was_set_is_seen():
    window = GoldenWindow("loaded")
    before, after = window.before.take(), window.after.take()
    later = dataclasses.replace(after, wall_s=after.wall_s + 3600)

    assert difference(before, after)["clock_step_s"] == near(0, within=1e-4)
    assert difference(before, later)["clock_step_s"] == near(3600, within=1e-4)


def test_a_kernel_that_charges_interrupts_to_no_process_has_them_subtracted_once():
    # No such kernel was at hand: its account of interrupts is written into the golden files by hand.
    plain, apart = GoldenWindow("stolen"), GoldenWindow("stolen")
    apart.before.write_columns("cpu0", irq=5.0)
    apart.after.write_columns("cpu0", irq=5.2)

    interrupts_s = 0.2 + 0.43
    # Of the softirq column, ksoftirqd used 0.02 s, which are among the groups already.
    assert plain.counters()["foreign_cpu_s"] - apart.counters()["foreign_cpu_s"] == near(interrupts_s - 0.02)


def test_interrupts_of_a_network_card_on_an_idle_cpu_are_not_foreign():
    window = GoldenWindow("loaded")
    before, after = window.before.take(), window.after.take()

    loopback = difference(before, after, generator_cpu_s=0.0)
    from_outside = difference(before, after)

    # Softirq of each CPU, times the share in which it was idle.
    idle_s = 0.23 * (0.80 / 2.04813) + 0.87 * (0.03 / 2.04813)
    assert loopback["foreign_cpu_s"] - from_outside["foreign_cpu_s"] == near(idle_s)


@pytest.mark.parametrize(
    ("groups", "account", "time"),
    [
        ("0::/\n", "/sys/fs/cgroup/cpu.stat", "throttled_usec {}000\n"),
        ("4:cpu,cpuacct:/\n0::/\n", "/sys/fs/cgroup/cpu/cpu.stat", "throttled_time {}000000\n"),
    ],
)
def test_throttling_by_a_cpu_quota_is_counted(groups: str, account: str, time: str):
    window = GoldenWindow("loaded")
    for moment, counts, milliseconds in (
        (window.before, "nr_periods 50\nnr_throttled 3\n", 250),
        (window.after, "nr_periods 70\nnr_throttled 8\n", 1500),
    ):
        moment.files[f"/proc/{moment.facts['server']}/cgroup"] = groups
        moment.files[account] = counts + time.format(milliseconds)

    counted = window.counters()

    assert (counted["throttled_periods"], counted["quota_periods"]) == (5, 20)
    assert counted["throttled_s"] == near(1.25)


def test_a_process_belongs_to_the_group_of_the_nearest_root():
    moment = Moment("loaded.before")

    taken = moment.take()

    tuner = {pid for pid, _ in taken.groups["tuner"]}
    assert tuner == {28758, 28759, 28760, 28761}
    assert {pid for pid, _ in taken.groups["server"]} == {28762, 28764, 28765}


def test_every_name_is_in_the_table():
    documented = counters_module.__doc__ or ""
    window = GoldenWindow("loaded")
    for moment in (window.before, window.after):
        moment.files["/sys/fs/cgroup/cpu/cpu.stat"] = "nr_periods 9\nnr_throttled 3\nthrottled_time 250000\n"

    names = {re.sub(r"^cpu\d+_", "cpuN_", name) for name in window.counters()}

    table = set(re.findall(r"\w+", _spelled_out(documented)))
    assert names - {"interrupts_cpu_s"} <= table


def _spelled_out(text: str) -> str:
    """Write name_{a,b}_s as name_a_s name_b_s."""
    while found := re.search(r"(\w*)\{([\w,]+)\}([\w{},]*)", text):
        head, middles, tail = found.groups()
        every = " ".join(f"{head}{middle}{tail}" for middle in middles.split(","))
        text = text[: found.start()] + every + text[found.end() :]
    return text


def test_counting_imports_nothing_heavy():
    command = "import sys, tuner.measure.counters; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    ).stdout.split()

    assert {"numpy", "scipy", "optuna"}.isdisjoint(loaded)
