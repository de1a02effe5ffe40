"""Who works on a study: each host with what is measured there, since when, and how many trials it makes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from tuner.records import State, Trial
from tuner.study.facts import FINGERPRINT, OTHER_HOSTS, VERDICT
from tuner.study.storage import Storage

LATELY_S = 3600.0
"""How far back a host's rate looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """One host of a study."""

    host: str
    doing: str
    """What is measured there now: role and number of the trial; empty when nothing is, or nobody works."""
    since_s: float | None
    """Seconds since that trial began; None when nothing is measured."""
    silent_s: float | None
    """Seconds since its worker was heard of; None when none is connected."""
    trials: int
    """That have ended."""
    per_hour: float
    """Trials of the last hour in which it was at work."""
    failed: int
    """Trials that were the configurations' fault."""
    lost: int
    """Trials that gave nothing: the environment's fault, or lost with their worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All hosts of a study."""

    study: str
    state: str
    """finished, running or stopped."""
    hosts: tuple[HostRow, ...]

    @property
    def trials(self) -> int:
        """Return how many trials have ended on all hosts."""
        return sum(each.trials for each in self.hosts)

    @property
    def per_hour(self) -> float:
        """Return how many trials all hosts make in an hour."""
        return sum(each.per_hour for each in self.hosts)

    def as_json(self) -> dict[str, Any]:
        """Return the same for scripts."""
        return {
            "study": self.study, "state": self.state, "trials": self.trials, "per_hour": self.per_hour,
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
    trials = storage.trials()
    first, hosts = storage.recall(FINGERPRINT), storage.hosts
    joined = [first.host, *(storage.recall(OTHER_HOSTS) or {})] if first else []
    known = dict.fromkeys(joined if hosts is None else hosts.names)
    groups: dict[str, list[Trial]] = {host: [] for host in known}
    for trial in trials:
        # In a study of one worker trials name no host.
        groups.setdefault(trial.host or next(iter(known), ""), []).append(trial)
    is_finished = storage.recall(VERDICT) is not None
    # What is still running where nobody is at work was cut off.
    running = {trial.number for trial in trials if is_running and trial.state is State.RUNNING}
    return Fleet(
        study=study,
        state="finished" if is_finished else "running" if is_running else "stopped",
        hosts=tuple(_row(host, group, running, silences, now_s) for host, group in groups.items()),
    )


def _row(
    host: str,
    trials: Sequence[Trial],
    running: Collection[int],
    silences: Mapping[str, float],
    now_s: float,
) -> HostRow:
    ended = [trial for trial in trials if trial.state is not State.RUNNING]
    now = next((trial for trial in reversed(trials) if trial.number in running), None)
    return HostRow(
        host=host,
        doing=f"{now.role.label} #{now.number}" if now else "",
        since_s=max(0.0, now_s - now.started_s) if now else None,
        silent_s=silences.get(host),
        trials=len(ended),
        per_hour=_per_hour(ended),
        failed=sum(trial.state is State.FAILED for trial in ended),
        lost=sum(trial.state is State.INVALID for trial in ended),
    )


def _per_hour(ended: Sequence[Trial]) -> float:
    """Return the rate of trials over the last hour in which any was made."""
    if not ended:
        return 0.0
    last_s = ended[-1].started_s + _took_s(ended[-1])
    lately = [trial for trial in ended if trial.started_s >= last_s - LATELY_S]
    spent_s = last_s - lately[0].started_s if lately else 0.0
    return 3600 * len(lately) / spent_s if spent_s > 0 else 0.0


def _took_s(trial: Trial) -> float:
    return trial.timing.deploy_s + trial.timing.load_s
