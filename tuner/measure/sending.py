"""Sends one window of load from one or several places at the same time, and adds up what they counted."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import PurePosixPath
from threading import Event

from tuner.errors import LoadFailed, TargetError
from tuner.hosts.connection_room import SPARE_FILES
from tuner.hosts.load_places import LoadPlace
from tuner.measure.unanswered import add_unanswered, count_unanswered, is_watched
from tuner.ports import (
    Completed,
    ConnectTime,
    Failures,
    FileState,
    Latency,
    LoadGenerator,
    LoadResult,
    Workload,
)
from tuner.records.latency import merge
from tuner.study.loads.load_bounds import refuse_excess

GRACE_S = 10.0
"""A generator that has not ended so long after its window is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One place's part of a window's load."""

    place: LoadPlace
    workload: Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What became of a window's load."""

    result: LoadResult | None
    """What all places counted; None when one of them has no counts."""
    problem: str | None = None
    """How a generator failed."""
    lost: str | None = None
    """Which load host could not be used, and why: not the configuration's fault."""
    target_cpu_s: float | None = None
    """CPU seconds of the generators on the target's own CPUs; None when none is there."""
    busy: float = 0.0
    """CPU seconds of the busiest place per second and per CPU that its generator can use, 0 to 1."""
    skew_s: float = 0.0
    """Between the first and the last command to begin, as the tuner sent them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What became of one share."""

    began_s: float
    completed: Completed | None = None
    result: LoadResult | None = None
    problem: str | None = None
    lost: str | None = None


def share_out(workload: Workload, places: Sequence[LoadPlace]) -> tuple[Share, ...]:
    """Divide connections, rate and requests over the places; one without a connection has nothing to do."""
    refuse_excess(workload)
    each, more = divmod(workload.connections, len(places))
    shares: list[Share] = []
    before = 0
    for number, place in enumerate(places):
        connections = each + (number < more)
        rate = workload.rate_rps
        part = replace(
            workload,
            connections=connections,
            threads=max(1, min(workload.threads, connections)),
            rate_rps=None if rate is None else rate * connections / workload.connections,
            requests_total=_share_of_requests(workload, before, connections),
            directory=place.directory,
        )
        shares += [Share(place=place, workload=part)] * (connections > 0)
        before += connections
    return tuple(shares)


def _share_of_requests(workload: Workload, before: int, connections: int) -> int | None:
    """Return the requests of some connections, so that those of all connections add up to the total."""
    total = workload.requests_total
    if total is None:
        return None
    upto = (total * (before + connections)) // workload.connections
    return upto - (total * before) // workload.connections


def split_in_two(share: Share) -> tuple[Share, Share]:
    """Split a share between two generators of its place, half of the connections each."""
    half = replace(share.workload, connections=max(1, share.workload.connections // 2))
    beside = replace(half, directory=half.directory / "second")
    return replace(share, workload=half), replace(share, workload=beside)


def send(generator: LoadGenerator, shares: Sequence[Share]) -> Sent:
    """Send all shares at the same time; each is bounded in time by its own host.

    Raises:
        TargetError: a place that cannot be lost has no such program.
    """
    watched = [share for share in shares if is_watched(generator, share.workload)]
    if len(shares) == 1 and not watched:
        return _gather(shares, [_send_one(generator, shares[0])])
    ended = Event()
    pool = ThreadPoolExecutor(max_workers=len(shares) + len(watched), thread_name_prefix="load")
    try:
        running = [pool.submit(_send_one, generator, share) for share in shares]
        counting = [pool.submit(count_unanswered, each.place, each.workload, ended) for each in watched]
        parts = [each.result() for each in running]
        ended.set()
        return _gather(shares, parts, unanswered=sum(each.result() for each in counting))
    finally:
        ended.set()
        # Whoever interrupts a window has to put things back, not to wait; the load ends by itself.
        pool.shutdown(wait=False, cancel_futures=True)


def _send_one(generator: LoadGenerator, share: Share) -> _Part:
    place, workload = share.place, share.workload
    began_s = time.monotonic()
    completed = None
    try:
        _write_files(generator, share)
        began_s = time.monotonic()
        completed = place.host.run(
            generator.command(workload),
            timeout_s=workload.duration_s + GRACE_S,
            cpus=place.cpus or None,
            open_files=workload.connections + SPARE_FILES,
        )
        result = generator.parse(completed, _read_outputs(generator, share), workload)
    except LoadFailed as failed:
        place.written.clear()
        return _Part(began_s=began_s, completed=completed, problem=str(failed))
    except TargetError as error:
        if not place.is_remote:
            raise
        place.written.clear()
        return _Part(began_s=began_s, completed=completed, lost=f"load host {place.host.name}: {error}")
    return _Part(began_s=began_s, completed=completed, result=result)


def _write_files(generator: LoadGenerator, share: Share) -> None:
    """Write what is not there yet, and anew what the generator writes itself: nothing old is read for new."""
    place, outputs = share.place, generator.outputs(share.workload)
    for path, content in generator.files(share.workload).items():
        if path not in outputs and place.written.get(path) == content:
            continue
        place.host.write(path, FileState(content=content))
        place.written[path] = content


def _read_outputs(generator: LoadGenerator, share: Share) -> dict[PurePosixPath, bytes]:
    paths = generator.outputs(share.workload)
    looked = share.place.host.look(paths) if paths else share.place.host
    contents = {path: looked.read(path).content for path in paths}
    return {path: content for path, content in contents.items() if content is not None}


def _gather(shares: Sequence[Share], parts: Sequence[_Part], *, unanswered: int = 0) -> Sent:
    problems = [part.problem for part in parts if part.problem is not None]
    lost = [part.lost for part in parts if part.lost is not None]
    results = [part.result for part in parts if part.result is not None]
    on_target = [
        part.completed.cpu_s
        for share, part in zip(shares, parts, strict=True)
        if share.place.is_on_target and part.completed is not None
    ]
    began_s = [part.began_s for part in parts]
    return Sent(
        result=add_unanswered(add_up(results), unanswered) if len(results) == len(parts) else None,
        problem="; ".join(problems) or None,
        lost="; ".join(lost) or None,
        target_cpu_s=sum(on_target) if any(share.place.is_on_target for share in shares) else None,
        busy=_find_busiest(shares, parts),
        skew_s=max(began_s) - min(began_s),
    )


def _find_busiest(shares: Sequence[Share], parts: Sequence[_Part]) -> float:
    """Return how busy the busiest place was; the generators of one place share its CPUs."""
    used: dict[int, float] = {}
    threads: dict[int, int] = {}
    for share, part in zip(shares, parts, strict=True):
        place = id(share.place)
        used[place] = used.get(place, 0.0) + _cpus(share, part)
        threads[place] = threads.get(place, 0) + share.workload.threads
    places = {id(share.place): share.place for share in shares}
    return max(cpus / places[each].cpus_of(threads[each], cpus) for each, cpus in used.items())


def _cpus(share: Share, part: _Part) -> float:
    """Return how many CPUs one generator kept busy."""
    if part.completed is None:
        return 0.0
    lasted_s = share.workload.duration_s if part.result is None else part.result.duration_s
    return part.completed.cpu_s / (lasted_s or share.workload.duration_s)


def add_up(results: Sequence[LoadResult]) -> LoadResult:
    """Add up what several generators counted at the same time.

    The slowest clock decides: all correct responses count over the longest duration, so that one generator
    that ran on alone makes goodput smaller, never greater. Response times are added as histograms; without
    them there are no quantiles, because the mean of p99s is no p99 of anything.
    """
    if len(results) == 1:
        return results[0]
    latencies = [each.latency for each in results if each.latency is not None]
    return LoadResult(
        duration_s=max(each.duration_s for each in results),
        correct=sum(each.correct for each in results),
        failures=_sum_failures([each.failures for each in results]),
        bytes=sum(each.bytes for each in results),
        latency=_add_latencies(latencies),
        connect_time=_span([each.connect_time for each in results if each.connect_time is not None]),
        aborted="; ".join(each.aborted for each in results if each.aborted is not None) or None,
        generator_fault="; ".join(each.generator_fault for each in results if each.generator_fault) or None,
        sent=tuple(map(sum, zip(*(each.sent for each in results), strict=False))),
    )


def _sum_failures(failures: Sequence[Failures]) -> Failures:
    kinds = [each.name for each in fields(Failures)]
    return Failures(**{kind: sum(getattr(each, kind) for each in failures) for kind in kinds})


def _add_latencies(latencies: Sequence[Latency]) -> Latency | None:
    return merge(latencies) if latencies else None


def _span(times: Sequence[ConnectTime]) -> ConnectTime | None:
    """Combine times to connect; all places have as many connections, but for one."""
    if not times:
        return None
    return ConnectTime(
        min_ms=min(each.min_ms for each in times),
        mean_ms=sum(each.mean_ms for each in times) / len(times),
        max_ms=max(each.max_ms for each in times),
    )
