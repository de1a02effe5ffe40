"""How much an earlier study says of a new one: the likeness of two hosts and loads, from 0 to 1.

The likeness is exp(−distance), and the distance is a sum, so that each difference costs its share whatever
else differs. What a difference costs is set by what it changes of a server's answer to its settings:

* Another load decides which settings act at all: keep-alive, protocol, TLS and the like cost most.
* Processors decide where a server waits. Their number counts by its logarithm, as all capacities do: from 2
  to 4 is as far as from 32 to 64.
* Another minor version of a server moves defaults and code; another patch level does not.
* Memory, kernel and processor model shift sizes of effects more than their signs, and cost least.

The weights are a judgement. They are checked by what they lead to (benchmarks/transfer.md), and a new study's
own trials overrule them (`tuner.optimize.concordance`).
"""

import math
from collections.abc import Mapping

from tuner.corpus.corpus_study import Surroundings
from tuner.ports import Scalar

LEAST_LIKENESS = 0.1
"""Below that a study says nothing."""
PER_DOUBLING = {"cores": 0.25, "memory_mib": 0.05, "connections": 0.1, "page_bytes": 0.1}
"""Distance of twice as much."""
OTHER_LOAD = 0.4
"""Of each other fact of the load that differs."""
OTHER_CPU, OTHER_KERNEL, OTHER_PLACE = 0.15, 0.1, 0.2
OTHER_MINOR, OTHER_MAJOR = 0.1, 0.5
"""Of a server whose version differs in the second part, or in the first."""
MISSING_SERVER = 0.5
"""Of each server that one of both lacks."""


def likeness(one: Surroundings, other: Surroundings) -> float:
    """Return how alike two hosts with their loads are; 0 where no server is the same."""
    common = one.servers.keys() & other.servers.keys()
    if not common:
        return 0.0
    distance = MISSING_SERVER * len(one.servers.keys() ^ other.servers.keys())
    distance += sum(_between_versions(one.servers[name], other.servers[name]) for name in common)
    distance += OTHER_CPU * (one.cpu != other.cpu) + OTHER_PLACE * (one.co_located != other.co_located)
    distance += OTHER_KERNEL * (_parts(one.kernel) != _parts(other.kernel))
    distance += PER_DOUBLING["cores"] * _doublings(one.cores, other.cores)
    distance += PER_DOUBLING["memory_mib"] * _doublings(one.memory_mib, other.memory_mib)
    return math.exp(-distance - _between_loads(one.workload, other.workload))


def _between_loads(one: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> float:
    """Return the distance by the facts that are known of both."""
    total = 0.0
    for name in one.keys() & other.keys():
        if name in PER_DOUBLING:
            total += PER_DOUBLING[name] * _doublings(one[name], other[name])
        else:
            total += OTHER_LOAD * (one[name] != other[name])
    return total


def _doublings(one: Scalar, other: Scalar) -> float:
    """Return how often the smaller of two sizes has to be doubled; a text is no size."""
    if isinstance(one, str) or isinstance(other, str):
        return float(one != other)
    return abs(math.log2(max(float(one), 1.0) / max(float(other), 1.0)))


def _between_versions(one: str, other: str) -> float:
    mine, theirs = _parts(one), _parts(other)
    if mine[:1] != theirs[:1]:
        return OTHER_MAJOR
    return OTHER_MINOR * (mine != theirs)


def _parts(version: str) -> tuple[str, ...]:
    """Return the first two parts of a version."""
    return tuple(version.split(".")[:2])
