"""Checks of what the load generator and the server did in a window. Pure."""

import math

from tuner.measure.validity.facts import WindowFacts, blamed, fault, percent, warning
from tuner.measure.validity.host import no_ports_left
from tuner.records import Check, Verdict
from tuner.statistics.bottleneck import find_server_busy, is_limit

AGAIN = "; tuner measures the window again"
"""How a verdict ends after which the window is measured again."""


def generator(facts: WindowFacts) -> Verdict | None:
    """Check that the generator did its work; if it cannot for one configuration alone, that is to blame."""
    if facts.lost is not None:
        return fault(Check.GENERATOR, f"{facts.lost.rstrip('.')}{AGAIN}")
    result = facts.result
    if result is not None and result.generator_fault is not None:
        return fault(
            Check.GENERATOR,
            f"the load generator reached one of its own limits: {result.generator_fault.rstrip('.')}; lower "
            "`connections:`, or raise its limits (ulimit -n, net.ipv4.ip_local_port_range)",
        )
    if result is not None and facts.requests_total is not None:
        return None  # what it did not send has failed, and is looked at as such
    problem = facts.problem if result is None else result.aborted
    if problem is None and result is not None:
        return None
    said = (problem or "the load generator gave no result").rstrip(".")
    if facts.baseline.is_healthy and facts.problems_in_row >= facts.limits.problems_in_row:
        return blamed(
            Check.GENERATOR,
            f"the generator failed {facts.problems_in_row} times in a row with this configuration, but not "
            f"with the default: {said}",
        )
    return fault(Check.GENERATOR, f"the generator failed: {said}{AGAIN}")


def duration(facts: WindowFacts) -> Verdict | None:
    """Check the duration of the load. A generator that gave up has said why."""
    if facts.result is None or facts.result.aborted is not None:
        return None
    if facts.requests_total is not None:
        return _short(facts.requests_total, facts.result.duration_s, facts.limits.short_s)
    tolerance_s = facts.limits.duration_share * facts.asked_s + facts.limits.duration_s
    if abs(facts.result.duration_s - facts.asked_s) <= tolerance_s:
        return None
    return fault(
        Check.DURATION,
        f"the load lasted {facts.result.duration_s:.2f} s instead of {facts.asked_s:g} ± {tolerance_s:.2f} "
        f"s{AGAIN}",
    )


def _short(requests: int, duration_s: float, least_s: float) -> Verdict | None:
    """Warn of a number of requests that is over too soon to be measured well."""
    if duration_s >= least_s:
        return None
    enough = math.ceil(requests * least_s / max(duration_s, 0.001))
    return warning(
        Check.DURATION,
        f"{requests:,} requests took {duration_s:.2f} s, too short to be measured well; raise "
        f"`load.requests_total:` to {enough:,} or more",
    )


def schedule(facts: WindowFacts) -> Verdict | None:
    """Check that the generator has time to keep a rate: the waits of a busy one are its own."""
    if facts.rate_rps is None or facts.generator_cpu < facts.limits.generator_busy:
        return None
    return fault(
        Check.SCHEDULE,
        f"the generator used {percent(facts.generator_cpu)} of its CPUs, too much to send "
        f"{facts.rate_rps:,.8g} requests/s on time; lower `rate:`, give the generator more CPUs, or use "
        "another host (`load.host:`)",
    )


def saturated(facts: WindowFacts) -> Verdict | None:
    """Check that the generator was not the limit; one that is merely busy beside a full server is none."""
    server_busy = find_server_busy(facts.counters)
    is_full = facts.rate_rps is None and facts.generator_cpu >= facts.limits.generator_busy
    if not is_full or (server_busy is not None and not is_limit(facts.generator_cpu, server_busy)):
        return None
    return warning(
        Check.SATURATED,
        f"the generator used {percent(facts.generator_cpu)} of its CPUs, so goodput is only a lower bound; "
        "give the generator more CPUs, or use a generator that needs less CPU time",
    )


def body(facts: WindowFacts) -> Verdict | None:
    """Check the length of the responses."""
    if facts.result is None:
        return None
    wrong = facts.result.failures.length
    answered = facts.result.correct + wrong
    if wrong <= facts.limits.wrong_body_share * answered:
        return None
    if facts.is_page_replaced:
        return fault(Check.BODY, f"the page changed during the window{AGAIN}")
    return blamed(
        Check.BODY,
        f"{wrong:,} of {answered:,} responses had another body than {facts.expected}; either this "
        "configuration serves another page, or the page itself changes (then write `body: any` under "
        "`load:`)",
    )


def errors(facts: WindowFacts) -> Verdict | None:
    """Check failed requests, unless the generator's own limits made them fail."""
    result = facts.result
    if result is None or result.generator_fault is not None or no_ports_left(facts):
        return None
    if facts.is_page_replaced:
        return None
    failed = result.failures.total
    asked = result.correct + failed
    rate = failed / asked if asked else 1.0
    if rate <= facts.limits.errors_warning:
        return None
    named = result.failures.describe() if failed else "the server answered no request"
    said = f"{failed:,} of {asked:,} requests failed, {percent(rate, 2)} ({named})"
    if facts.requests_total is not None and result.aborted is not None:
        said += f"; the generator gave up: {result.aborted}"
    if rate > facts.limits.errors_hopeless:
        return blamed(Check.ERRORS, f"{said}; this configuration cannot serve this load at all")
    if rate > facts.limits.errors_fault:
        return blamed(Check.ERRORS, f"{said}; this configuration cannot serve this load")
    return warning(Check.ERRORS, f"{said}; read the server's log")


def effective(facts: WindowFacts) -> Verdict | None:
    """Check that what was measured is what was asked for."""
    if not facts.not_effective:
        return None
    return blamed(
        Check.EFFECTIVE,
        (f"{', '.join(facts.not_effective)}; so tuner did not measure the requested configuration"),
    )
