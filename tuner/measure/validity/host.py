"""Checks of what the host did during a window. Pure."""

from tuner.measure.validity.facts import WindowFacts, blamed, fault, percent, warning
from tuner.records import Check, Verdict

MIB = 2**20
MORE_PORTS = "wait a minute, or widen net.ipv4.ip_local_port_range"


def steal(facts: WindowFacts) -> Verdict | None:
    """Check the CPU time that the hypervisor took away."""
    share = facts.counters.get("steal_share", 0.0)
    return _graded(
        Check.STEAL,
        share,
        (facts.limits.steal_warning, facts.limits.steal_fault),
        f"the hypervisor gave {percent(share, 1)} of the CPU time to other machines; use a machine with "
        "dedicated CPUs",
    )


def foreign(facts: WindowFacts) -> Verdict | None:
    """Check for programs that are neither server nor generator nor tuner."""
    share = facts.counters.get("foreign_cpu_share", 0.0)
    surely = share - facts.limits.foreign_errors * facts.rate("foreign_cpu_error_s")
    return _graded(
        Check.FOREIGN,
        surely,
        (facts.limits.foreign_warning, facts.limits.foreign_fault),
        f"other programs used {percent(share)} of one CPU; stop these programs (`top` lists them)",
    )


def quota(facts: WindowFacts) -> Verdict | None:
    """Check for a CPU quota: only a warning, since one that is always there is part of the machine."""
    periods = facts.counters.get("throttled_periods", 0.0)
    if not periods:
        return None
    return warning(
        Check.QUOTA,
        f"the CPU quota of the server's cgroup throttled the server in {periods:.0f} periods; raise the "
        "quota (CPUQuota= of systemd, --cpus of docker), unless your production server has the same quota",
    )


def ports(facts: WindowFacts) -> Verdict | None:
    """Check for local ports that earlier connections still hold."""
    waiting = facts.counters.get("time_wait", 0.0)
    share = waiting / facts.local_ports
    said = f"{waiting:,.0f} sockets in TIME_WAIT hold {percent(share)} of the local ports"
    if no_ports_left(facts) and facts.result is not None:
        failed = facts.result.failures.connect
        return fault(Check.PORTS, f"{said} and {failed:,} connections failed; {MORE_PORTS}")
    if share > facts.limits.time_wait_share:
        return warning(Check.PORTS, f"{said}; {MORE_PORTS}")
    overflows = facts.counters.get("time_wait_overflows", 0.0)
    if not overflows:
        return None
    # This trial alone may have filled it, and another try would fill it again.
    return warning(
        Check.PORTS,
        f"the kernel closed {overflows:,.0f} sockets early, because its TIME_WAIT table was full; raise "
        "net.ipv4.tcp_max_tw_buckets",
    )


def no_ports_left(facts: WindowFacts) -> bool:
    """Return whether connections failed while most local ports were waiting: not the server's errors."""
    full = facts.counters.get("time_wait", 0.0) > facts.limits.time_wait_share * facts.local_ports
    return full and facts.result is not None and facts.result.failures.connect > 0


def memory(facts: WindowFacts) -> Verdict | None:
    """Check for want of memory, and whether the server is the reason."""
    limits = facts.limits
    kills = facts.counters.get("oom_kills", 0.0)
    full = facts.rate("pressure_memory_full_s")
    swapped = facts.rate("swap_ins")
    faults = facts.rate("server_faults_major") - facts.baseline.major_faults_per_s
    signs = (
        (kills > 0, f"the kernel killed {kills:.0f} processes because memory ran out"),
        (
            full > limits.memory_full_share,
            (f"all programs waited for memory in {percent(full, 1)} of the time"),
        ),
        (swapped > limits.swap_ins_per_s, f"the kernel read {swapped:,.0f} pages/s back from swap"),
        (
            faults > limits.major_faults_per_s,
            f"the server read {faults:,.0f} pages/s more from disk than with the default",
        ),
    )
    seen = [sign for is_seen, sign in signs if is_seen]
    if not seen:
        return None
    said = (
        f"{', '.join(seen)} (the server holds {facts.counters.get('server_rss_bytes', 0.0) / MIB:,.0f} MiB)"
    )
    if _is_the_servers(facts):
        return blamed(Check.MEMORY, f"{said}; this configuration needs too much memory")
    return fault(Check.MEMORY, f"{said}; stop programs that use much memory; tuner measures the window again")


def clock(facts: WindowFacts) -> Verdict | None:
    """Check for a clock that was set."""
    step_s = facts.counters.get("clock_step_s", 0.0)
    if abs(step_s) <= facts.limits.clock_step_s:
        return None
    return fault(
        Check.CLOCK,
        f"the clock jumped by {step_s:+.3f} s; let NTP slew the clock instead; tuner measures the "
        "window again",
    )


def _is_the_servers(facts: WindowFacts) -> bool:
    """Return whether the server was what the kernel killed, or holds most of the memory that is in use."""
    counters = facts.counters
    was_killed = counters.get("oom_kills", 0.0) > 0 and counters.get("server_exits", 0.0) > 0
    in_use_bytes = counters.get("memory_total_bytes", 0.0) - counters.get("memory_available_bytes", 0.0)
    return was_killed or counters.get("server_rss_bytes", 0.0) > in_use_bytes / 2 > 0


def _graded(check: Check, value: float, steps: tuple[float, float], said: str) -> Verdict | None:
    """Warn from the first step on, and blame the environment from the second."""
    if value > steps[1]:
        return fault(check, f"{said}; tuner measures the window again")
    return warning(check, said) if value > steps[0] else None
