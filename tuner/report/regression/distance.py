"""In what two fingerprints differ, and what that may mean for a result that was measured under the first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tuner.records import Fingerprint

MEMORY_TOLERANCE = 0.05
"""What the kernel keeps for itself differs from release to release; such a change is none of the machine."""
MAY_BE_ANOTHER_MACHINE = "what is best, and what it gains, may differ on another machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One part of the surroundings that is not as it was."""

    what: str
    """Which part it is, such as kernel or nginx."""
    before: str
    """As the study had it."""
    now: str
    """As it is now."""
    meaning: str
    """What it may mean, a clause."""

    def __str__(self) -> str:
        return f"{self.what}: {self.before} → {self.now}: {self.meaning}"


def find_distance(before: Fingerprint, now: Fingerprint) -> tuple[Difference, ...]:
    """Return the differences, those of the machine first.

    What is empty now was not looked at: on a host that nothing loads there is no generator.
    """
    return (*_of_machine(before, now), *_of_programs(before, now), *_of_load(before, now))


def _of_machine(before: Fingerprint, now: Fingerprint) -> Iterator[Difference]:
    if before.host != now.host:
        yield Difference(
            what="host", before=before.host, now=now.host,
            meaning="another machine, or a new name of the same one",
        )  # fmt: skip
    if before.cpu != now.cpu:
        yield Difference(what="CPU", before=before.cpu, now=now.cpu, meaning=MAY_BE_ANOTHER_MACHINE)
    if before.cores != now.cores:
        yield Difference(
            what="CPUs", before=str(before.cores), now=str(now.cores),
            meaning="numbers of processes and threads were chosen for the earlier number of CPUs",
        )  # fmt: skip
    if abs(now.memory_mib - before.memory_mib) > MEMORY_TOLERANCE * before.memory_mib:
        yield Difference(
            what="memory", before=f"{before.memory_mib} MiB", now=f"{now.memory_mib} MiB",
            meaning="buffers, caches and numbers of processes were chosen for the earlier memory",
        )  # fmt: skip
    if before.kernel != now.kernel:
        yield Difference(
            what="kernel", before=before.kernel, now=now.kernel,
            meaning=f"{_say_step(before.kernel, now.kernel)}: scheduler, network and the effect of "
            "kernel settings may have changed",
        )  # fmt: skip


def _of_programs(before: Fingerprint, now: Fingerprint) -> Iterator[Difference]:
    for name, old in before.servers.items():
        new = now.servers.get(name, "")
        # What is a part of the kernel has its version, and was told with it.
        if new and new != old and not now.kernel.startswith(new):
            yield Difference(
                what=name, before=old, now=new,
                meaning=f"{_say_step(old, new)}: defaults, and the effect of settings, may have changed",
            )  # fmt: skip


def _of_load(before: Fingerprint, now: Fingerprint) -> Iterator[Difference]:
    if not now.generator:
        return
    if before.generator != now.generator:
        yield Difference(
            what="load generator", before=before.generator, now=now.generator,
            meaning="ratios compare with those of the study, requests per second do not",
        )  # fmt: skip
    places = [_say_places(each) for each in (before, now)]
    if places[0] != places[1]:
        yield Difference(
            what="placement", before=places[0], now=places[1],
            meaning="server and load generator share the CPUs in another way",
        )  # fmt: skip


def _say_places(found: Fingerprint) -> str:
    """Return who runs where: server on CPUs 0, load on 1."""
    server, load = (", ".join(map(str, cpus)) or "any" for cpus in (found.server_cpus, found.generator_cpus))
    return f"server on CPUs {server}, load on {load}" if found.co_located else "load from elsewhere"


def _say_step(old: str, new: str) -> str:
    """Return how far two versions are from each other: by the first number that differs."""
    first, second = (re.findall(r"\d+", text) for text in (old, new))
    if first[:1] != second[:1]:
        return "another major release"
    return "another release series" if first[1:2] != second[1:2] else "another build of the same series"
