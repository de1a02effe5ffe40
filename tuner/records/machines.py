"""Whether two machines are alike, as their fingerprints have it."""

from collections.abc import Collection, Mapping
from dataclasses import asdict

from tuner.records import Fingerprint

HARDWARE = frozenset(
    {"cpu", "cores", "memory_mib", "limits", "kernel", "co_located", "server_cpus", "generator_cpus"}
)
"""In what machines of one study may differ by choice: each is compared with its own level."""


def find_differing(
    one: Fingerprint, other: Fingerprint, *, free: Collection[str] = ()
) -> dict[str, tuple[object, object]]:
    """Return in what two machines differ, but for what may: name → both values."""
    old, new = asdict(one), asdict(other)
    return {key: (old[key], new[key]) for key in new if key not in free and old.get(key) != new[key]}


def describe_differing(found: Mapping[str, tuple[object, object]]) -> str:
    """Return what `find_differing` found in one line."""
    return "; ".join(f"{key} was {old!r}, is {new!r}" for key, (old, new) in found.items())
