"""Who works on a study: each host with what is measured there, since when, and how many starts it makes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from tuner.records import Start, State
from tuner.study.facts import FINGERPRINT, OTHER_HOSTS, VERDICT
from tuner.study.storage import Storage

LATELY_S = 3600.0
"""How far back a host's rate looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """One host of a study."""

    host: str
    doing: str
    """What is measured there now: role and number of the start; empty when nothing is, or nobody works."""
    since_s: float | None
    """Seconds since that start began; None when nothing is measured."""
    silent_s: float | None
    """Seconds since its worker was heard of; None when none is connected."""
    starts: int
    """That have ended."""
    per_hour: float
    """Starts of the last hour in which it was at work."""
    failed: int
    """Starts that were the configurations' fault."""
    lost: int
    """Starts that gave nothing: the environment's fault, or lost with their worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All hosts of a study."""

    study: str
    state: str
    """finished, running or stopped."""
    hosts: tuple[HostRow, ...]

    @property
    def starts(self) -> int:
        """Return how many starts have ended on all hosts."""
        return sum(each.starts for each in self.hosts)

    @property
    def per_hour(self) -> float:
        """Return how many starts all hosts make in an hour."""
        return sum(each.per_hour for each in self.hosts)

    def as_json(self) -> dict[str, Any]:
        """Return the same for scripts."""
        return {
            "study": self.study, "state": self.state, "starts": self.starts, "per_hour": self.per_hour,
            "hosts": [asdict(each) for each in self.hosts],
        }  # fmt: skip


def read_fleet(
    study: str,
    storage: Storage,
    *,
    is_running: bool,
    now_s: float,
    silences: Mapping[str, float] = MappingProxyType({}),
) -> Fleet:
    """Read who works on a study.

    Args:
        study: its name.
        storage: of the study.
        is_running: whether any worker takes part now.
        now_s: seconds since the epoch.
        silences: host → seconds since its worker was heard of, where it is connected.
    """
    starts = storage.starts()
    first, hosts = storage.recall(FINGERPRINT), storage.hosts
    joined = [first.host, *(storage.recall(OTHER_HOSTS) or {})] if first else []
    known = dict.fromkeys(joined if hosts is None else hosts.names)
    groups: dict[str, list[Start]] = {host: [] for host in known}
    for start in starts:
        # In a study of one worker starts name no host.
        groups.setdefault(start.host or next(iter(known), ""), []).append(start)
    is_finished = storage.recall(VERDICT) is not None
    # What is still running where nobody is at work was cut off.
    running = {start.number for start in starts if is_running and start.state is State.RUNNING}
    return Fleet(
        study=study,
        state="finished" if is_finished else "running" if is_running else "stopped",
        hosts=tuple(_row(host, group, running, silences, now_s) for host, group in groups.items()),
    )


def _row(
    host: str,
    starts: Sequence[Start],
    running: Collection[int],
    silences: Mapping[str, float],
    now_s: float,
) -> HostRow:
    ended = [start for start in starts if start.state is not State.RUNNING]
    now = next((start for start in reversed(starts) if start.number in running), None)
    return HostRow(
        host=host,
        doing=f"{now.role} #{now.number}" if now else "",
        since_s=max(0.0, now_s - now.started_s) if now else None,
        silent_s=silences.get(host),
        starts=len(ended),
        per_hour=_per_hour(ended),
        failed=sum(start.state is State.FAILED for start in ended),
        lost=sum(start.state is State.INVALID for start in ended),
    )


def _per_hour(ended: Sequence[Start]) -> float:
    """Return the rate of starts over the last hour in which any was made."""
    if not ended:
        return 0.0
    last_s = ended[-1].started_s + _took_s(ended[-1])
    lately = [start for start in ended if start.started_s >= last_s - LATELY_S]
    spent_s = last_s - lately[0].started_s if lately else 0.0
    return 3600 * len(lately) / spent_s if spent_s > 0 else 0.0


def _took_s(start: Start) -> float:
    return start.timing.deploy_s + start.timing.load_s
