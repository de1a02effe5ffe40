"""Finds the load generators of a study, and refuses what they cannot send, before anything is started."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tuner import plugins
from tuner.errors import TargetError, UsageError
from tuner.hosts.load_places import find_generators
from tuner.measure.window import Load, example_workload
from tuner.ports import HTTP, Host, LoadGenerator
from tuner.space.problems import in_file
from tuner.study import LoadSettings, Study


def make_generators(settings: Study) -> tuple[LoadGenerator, ...]:
    """Return the generator of each load. Raises UsageError for an unknown one, and what it cannot send."""
    for each in settings.check_loads:
        _make_generator(settings, each.load)
    return tuple(_make_generator(settings, each) for each in settings.all_loads)


def _make_generator(settings: Study, load: LoadSettings) -> LoadGenerator:
    with in_file(settings.path):
        generator = plugins.make_load_generator(load.generator, **load.options())
    example = replace(example_workload(load), requests=load.requests, rate_rps=load.rate_rps)
    if "://" in load.path:
        example = replace(example, url=load.path)
    counted = replace(example, requests_total=load.requests_total, duration_s=load.time_limit_s)
    try:
        # It warms up by time, and is then measured as the study says.
        for each in (example, counted if load.requests_total else example):
            generator.command(each)
        _refuse_rate(generator, load)
    except UsageError as error:
        raise UsageError(f"{settings.path}: load: {error}") from error
    return generator


def _refuse_rate(generator: LoadGenerator, load: LoadSettings) -> None:
    """Raise UsageError for a rate that the generator cannot keep with the response times counted from it."""
    if load.rate_rps is None:
        return
    most_rps = getattr(generator, "most_rps_per_connection", None)
    if most_rps is None:
        raise UsageError(
            f"load generator {generator.name}: it cannot measure response times from the planned time of "
            f"each request. Use {' or '.join(plugins.generators_at_rate())}, or leave `load.rate:` out."
        )
    least = math.ceil(load.rate_rps / most_rps)
    if load.connections < least:
        raise UsageError(
            f"load generator {generator.name}: one connection sends at most {most_rps:g} requests/s, and "
            f"`rate:` asks for {load.rate_rps:,.8g} requests/s. Write `connections: {least}` or more."
        )


def describe_generators(generators: Sequence[LoadGenerator], hosts: Mapping[str, Host]) -> str:
    """Return names and versions of the generators. Raises TargetError where one is not installed."""
    versions = (f"{each.name} {find_generators(each, hosts)}".strip() for each in generators)
    return ", ".join(dict.fromkeys(versions))


def prepare_load(settings: Study, generators: Sequence[LoadGenerator], target: Host) -> Load:
    """Return the load, the others of several with it."""
    first = Load.prepare(generators[0], settings.load, target)
    loads = [
        replace(
            first, generator=generator, shape=load, requests_total=load.requests_total,
            time_limit_s=load.time_limit_s, timeout_s=load.timeout_s, rate_rps=load.rate_rps,
            keeps_rate=load.rate_rps is not None,
        )
        for generator, load in zip(generators, settings.all_loads, strict=True)
    ]  # fmt: skip
    if not settings.loads:
        return loads[0]
    named = [replace(load, name=each.name) for load, each in zip(loads, settings.loads, strict=True)]
    return replace(named[0], beside=tuple(named[1:]))


def prepare_fixed_rate(load: Load, settings: Study, hosts: Mapping[str, Host]) -> Load | None:
    """Return the load with a generator that can keep a rate, when it is there and can send it.

    None for a load that has a rate itself: its response times are compared already.
    """
    speaks = getattr(load.generator, "speaks", HTTP)
    has_rate = load.rate_rps is not None
    if has_rate or not load.shape.keepalive or settings.load.requests or load.beside or speaks != HTTP:
        return None
    generator = plugins.make_rate_generator()
    if generator is None:
        return None
    try:
        generator.command(example_workload(load.shape))
        find_generators(generator, hosts)
    except (TargetError, UsageError):
        return None
    return replace(load, generator=generator, requests_total=None)
