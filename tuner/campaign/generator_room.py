"""More room for a load generator that is the limit: other CPUs, more threads. In sandboxes only.

Installed servers run wherever the kernel puts them, and load hosts are other machines; there the study file
says how many threads there are, and which hosts.
"""

import math
from dataclasses import replace

from tuner.campaign.experiment import Experiment
from tuner.hosts.placement import place, read_cores
from tuner.measure.window import Load, example_workload
from tuner.records import Role
from tuner.statistics.bottleneck import Bottleneck, find_bottleneck
from tuner.study.facts import METRIC, MOVED_LOAD, MovedLoad


def give_generator_room(experiment: Experiment) -> None:
    """Move the load once, where the first trial of the default shows that its generator is the limit."""
    storage = experiment.storage
    windows = [window for trial in experiment.baselines() for window in trial.valid_windows]
    is_settled = storage.recall(METRIC) is not None or storage.recall(MOVED_LOAD) is not None
    is_late = any(trial.role is not Role.BASELINE for trial in experiment.trials)
    # What one of several loads lacks, another has too much of.
    setup = experiment.setup
    is_movable = not (setup.load.beside or setup.settings.target.is_managed or setup.is_elsewhere)
    if not windows or is_settled or is_late or not is_movable:
        return
    found = find_bottleneck(windows)
    moved = _plan(experiment, found) if found.is_generator else None
    if moved is None:
        return
    experiment.settle(MOVED_LOAD, moved)
    experiment.progress.note(
        f"{found}. The load generator now gets CPUs {', '.join(map(str, moved.generator_cpus))} and "
        f"{moved.threads} threads, and the server gets the other CPUs. The calibration starts again"
    )


def _plan(experiment: Experiment, found: Bottleneck) -> MovedLoad | None:
    """Divide the CPUs by what both sides used of them; None when that is how they are divided."""
    setup = experiment.setup
    server, generator = setup.placement.server_cpus, setup.placement.generator_cpus
    if server & generator or not _takes_threads(setup.load):
        return None
    threads = setup.load.shape.threads
    used = found.generator_busy * min(threads, len(generator))
    share = used / (used + (found.server_busy or 0.0) * len(server))
    cpus = server | generator
    # Rounded up: what is looked for is the server's limit.
    cores = read_cores(setup.host, cpus)
    wanted = math.ceil(share * len(cpus)) / len(cpus)
    placed = place(cpus, cores, generator_share=wanted)
    moved = MovedLoad(
        server_cpus=tuple(sorted(placed.server_cpus)),
        generator_cpus=tuple(sorted(placed.generator_cpus)),
        threads=max(threads, len(placed.generator_cpus)),
        since=max(trial.number for trial in (*experiment.trials, *experiment.pending)) + 1,
    )
    is_same = moved.threads == threads and placed.generator_cpus <= generator
    return None if is_same or len(placed.generator_cpus) < len(generator) else moved


def _takes_threads(load: Load) -> bool:
    """Return whether more threads make another command; a generator of one thread can use one CPU."""
    return _command(load, 1) != _command(load, 2)


def _command(load: Load, threads: int) -> tuple[str, ...]:
    shape = replace(load.shape, connections=2 * load.shape.connections, threads=threads)
    return load.generator.command(example_workload(shape))
