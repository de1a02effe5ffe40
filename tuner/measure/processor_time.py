"""Where the CPU seconds of a window went, from /proc/stat. Pure."""

from collections.abc import Mapping

from tuner.measure.procfs import STAT_COLUMNS

Processors = Mapping[str, Mapping[str, float]]
"""CPU ("cpu0") → column of /proc/stat → seconds."""
SAMPLED = ("user", "nice", "system", "irq", "softirq")
SHOWN = ("user", "system", "softirq", "steal", "idle")


def passed_between(before: Processors, after: Processors) -> dict[str, dict[str, float]]:
    """Subtract two readings, for the CPUs that were there all the time."""
    return {cpu: grown(before[cpu], columns) for cpu, columns in after.items() if cpu in before}


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Subtract counters that only grow; iowait alone may fall (proc_stat(5)), which means nothing."""
    return {name: max(0.0, value - before[name]) for name, value in after.items() if name in before}


def sum_processors(passed: Processors, elapsed_s: float) -> dict[str, float]:
    """Sum over all CPUs, and show each; names as in the table of counters.py."""
    capacity_s = elapsed_s * len(passed)
    total = {
        f"{column}_s": sum(columns.get(column, 0.0) for columns in passed.values()) for column in STAT_COLUMNS
    }
    sampled_s = sum(total[f"{column}_s"] for column in SAMPLED)
    return {
        "cpus": float(len(passed)),
        **total,
        **{
            f"{cpu}_{column}_s": columns[column]
            for cpu, columns in passed.items()
            for column in SHOWN
            if column in columns
        },
        # Not the sum of the busy columns: those are sampled at timer ticks, which virtual machines lose. On a
        # loaded guest with 2 CPUs that sum was 0.5 s of 3 s short, while this agreed with the sum over all
        # processes to 0.05 s. Idle time is measured (kernel/time/tick-sched.c, get_cpu_idle_time_us).
        "busy_s": max(0.0, capacity_s - total["idle_s"] - total["iowait_s"] - total["steal_s"]),
        "steal_share": total["steal_s"] / capacity_s,
        "softirq_share": total["softirq_s"] / sampled_s if sampled_s else 0.0,
    }


def charges_interrupts_apart(since_boot: Processors) -> bool:
    """Return whether this kernel keeps the time of interrupts out of the processes that they interrupt.

    It does with CONFIG_IRQ_TIME_ACCOUNTING (kernel/sched/core.c, update_rq_clock_task), and then measures the
    column irq. Otherwise that is filled only by a timer tick within another interrupt, which does not happen
    (kernel/sched/cputime.c, account_system_time), so it stays 0 from boot on.
    """
    return any(columns.get("irq", 0.0) > 0 for columns in since_boot.values())


def interrupts_without_process(
    passed: Processors, *, elapsed_s: float, charged_apart: bool, in_threads_s: float, from_outside: bool
) -> float:
    """Estimate the seconds of interrupts that are in no process's time and yet nobody's foreign work.

    Args:
        passed: by CPU and column.
        elapsed_s: length of the window.
        charged_apart: whether that is so for all interrupts, as `charges_interrupts_apart` tells.
        in_threads_s: what ksoftirqd did, which is in the column softirq and in its own time as well.
        from_outside: whether the load came over a network device. Its packets interrupt whatever runs, an
            idle CPU too; only those that meet a process are charged. Over loopback, packets are handled in
            the process that sends them: there, with nothing subtracted, foreign CPU agreed with the sum over
            all other processes to 0.04 s of 2 s.
    """
    if charged_apart:
        interrupts_s = sum(columns["irq"] + columns["softirq"] for columns in passed.values())
        return max(0.0, interrupts_s - in_threads_s)
    if not from_outside:
        return 0.0
    return sum(columns["softirq"] * min(1.0, columns["idle"] / elapsed_s) for columns in passed.values())
