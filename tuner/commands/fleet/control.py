"""The controller of a study on several hosts: it alone decides, and it alone writes.

A thread for each host runs the campaign as if there were no others; one at a time has the turn. Trials are
tasks of the host's worker. A host that is lost is tried again while the others go on.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Lock

from tuner.campaign.campaign import run_campaign
from tuner.campaign.experiment import Experiment, Seat, Shared
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import Progress
from tuner.campaign.trial import Executor
from tuner.campaign.trial_runner import name_session
from tuner.commands import session
from tuner.commands.fleet.engine import Engine, RemoteExecutor, connect_engine, open_engine, shown
from tuner.commands.fleet.hosts import look_at_all, refuse_unlike
from tuner.commands.fleet.process import Work, worker_process
from tuner.commands.fleet.telling import Telling
from tuner.errors import HostLost, TargetError, TunerError, Unreachable
from tuner.interrupts import uninterrupted
from tuner.optimize.optimizer import Optimizer
from tuner.records.machines import HARDWARE
from tuner.space import Space
from tuner.study import Study
from tuner.study.facts import VERDICT
from tuner.study.presets import Plan
from tuner.study.storage import Storage

AGAIN_S, MOST_AGAIN_S = 10.0, 300.0
"""Before a host that was lost is tried again: longer and longer."""
MOST_BEGUN = 8
"""Times that a host is tried that gives nothing: by then, after a quarter of an hour, it is given up."""
LONG_S = 600.0
"""A host that has measured for so long is tried as often as at first, whatever ended it."""
LOOK_S = 1.0
"""Between two looks for workers that have come."""
MOST_HOSTS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """What all hosts of a study have in common."""

    plan: Plan
    storage: Storage
    optimizer: Optimizer
    progress: Progress
    shared: Shared = field(default_factory=Shared)
    is_over: Event = field(default_factory=Event)
    """Set when one host has come to the verdict, or the study was stopped."""
    telling: Lock = field(default_factory=Lock)

    def stop(self, error: BaseException) -> None:
        """End the study on all hosts; the first error counts."""
        self.is_over.set()
        self.shared.turn.stop(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One host of a study, in its controller."""

    team: Team
    setup: Setup
    open_executor: Callable[[Telling], AbstractContextManager[Executor]]
    """Begins what runs the trials of the host, and ends it."""

    @property
    def host(self) -> str:
        """Return the host's name."""
        return self.setup.settings.target.host

    def drive(self) -> None:
        """Run the campaign on the host to the study's verdict; a host that is lost is tried again.

        Raises TargetError where the host is given up.
        """
        team, begun = self.team, 0
        telling = Telling(self.host, team.progress, team.telling)
        while not team.is_over.is_set():
            begun, begun_s, before = begun + 1, time.monotonic(), self._count_measured()
            try:
                self._run(telling)
            except (TargetError, HostLost) as error:
                is_away = isinstance(error, Unreachable | HostLost) or time.monotonic() - begun_s >= LONG_S
                if is_away and self._count_measured() > before:
                    begun = 1
                said = str(error).removeprefix(f"{self.host}: ")
                if begun >= MOST_BEGUN:
                    raise TargetError(f"{self.host}: {said} Run the same command again to resume.") from error
                wait_s = min(MOST_AGAIN_S, AGAIN_S * 2 ** (begun - 1))
                if not team.is_over.is_set():
                    telling.note(f"{said} tuner tries again in {wait_s:.0f} s")
                team.is_over.wait(wait_s)

    def _run(self, telling: Telling) -> None:
        team, setup = self.team, self.setup
        with self.open_executor(telling) as executor, team.shared.turn.taken():
            experiment = Experiment(
                setup, team.plan, team.storage, team.optimizer, telling,
                session=name_session(self.host),
                seat=Seat(host=self.host, executor=executor, shared=team.shared),
            )  # fmt: skip
            team.storage.remember(VERDICT, run_campaign(experiment))
            team.is_over.set()

    def _count_measured(self) -> int:
        """Return how many trials of the host count."""
        return sum(trial.host == self.host and trial.counts for trial in [*self.team.storage.known.ended])


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a study, as of `tuner.run`."""

    settings: Study
    progress: Progress
    preset: str | None = None
    minutes: float | None = None
    trials: int | None = None

    def form_team(self, setups: Sequence[Setup]) -> tuple[Team, list[Setup]] | None:
        """Begin the study, or resume it; None where it has its verdict.

        Returns what its hosts have in common, and them with the ranges of the first one.
        """
        study = session.take_up(
            setups[0], preset=self.preset, minutes=self.minutes, trials=self.trials, free=self.free
        )
        if study.optimizer is None:
            return None
        team = Team(plan=study.plan, storage=study.storage, optimizer=study.optimizer, progress=self.progress)
        return team, [self.admit(team, each, study.setup.space) for each in setups]

    @property
    def models_unlike(self) -> bool:
        """Return whether the hosts may differ in hardware."""
        return self.settings.targets is not None and self.settings.targets.models_unlike

    @property
    def free(self) -> frozenset[str]:
        """Return in what the hosts may differ."""
        return frozenset({"host", *(HARDWARE if self.models_unlike else ())})

    def admit(self, team: Team, setup: Setup, space: Space) -> Setup:
        """Let a host take part. Raises UsageError where it is unlike the others."""
        definition = self.settings.definition(space if self.models_unlike else setup.space)
        team.storage.admit(setup.settings.target.host, setup.fingerprint, definition, free=self.free)
        # Equal, it is kept once.
        return replace(setup, space=space)


def control(request: Request, scheduler: str | None) -> None:
    """Measure what is missing of a study on all of its hosts.

    Without `targets:` those are all that have a worker. What is wrong with the study, or was not put back,
    ends it on all of them.

    Args:
        request: what is asked.
        scheduler: address of a scheduler with workers; None to begin one, with a worker for each target.

    Raises:
        TargetError: a host cannot be used, or was given up.
        UsageError: the study is wrong.
        RestoreFailed: originals of a host could not be put back.
    """
    if scheduler is not None:
        with connect_engine(scheduler) as engine:
            control_there(request, engine)
        return
    setups = look_at_all(request.settings)
    refuse_unlike(setups)
    if (formed := request.form_team(setups)) is None:
        return
    team, setups = formed
    with open_engine(request.settings.target.watchdog_s) as engine, shown(engine, request.settings):
        drive_all(team, [lane_here(team, engine, each) for each in setups])


def lane_here(team: Team, engine: Engine, setup: Setup, work: Work | None = None) -> Lane:
    """Return the lane of a host that has a worker of this process; see `worker_process`."""

    @contextmanager
    def open_executor(telling: Telling) -> Iterator[Executor]:
        with worker_process(setup.settings, engine.address, engine.security, work=work) as worker:
            yield RemoteExecutor(
                host=lane.host, client=engine.client, turn=team.shared.turn,
                check=engine.watch_own(lane.host, worker.check), note=telling.note,
            )  # fmt: skip

    lane = Lane(team=team, setup=setup, open_executor=open_executor)
    return lane


def _lane_there(team: Team, engine: Engine, setup: Setup) -> Lane:
    """Return the lane of a host whose worker somebody else has begun."""

    @contextmanager
    def open_executor(telling: Telling) -> Iterator[Executor]:
        executor = RemoteExecutor(
            host=lane.host, client=engine.client, turn=team.shared.turn, check=engine.watch(lane.host),
            note=telling.note,
        )  # fmt: skip
        try:
            yield executor
        finally:
            engine.release(lane.host)

    lane = Lane(team=team, setup=setup, open_executor=open_executor)
    return lane


def control_there(request: Request, engine: Engine) -> None:
    """Measure a study with the workers of a scheduler."""
    hosts = request.settings.hosts
    wanted = None if hosts is None else frozenset(hosts.names)
    found = engine.wait_for_hosts(wanted, request.progress.note)
    first = [engine.introduce(host) for host in sorted(found)[: 1 if hosts is None else None]]
    setups = [each.setup for each in first]
    if hosts is not None:
        refuse_unlike(setups, [each.identity for each in first])
    if (formed := request.form_team(setups)) is None:
        return
    team, setups = formed
    lanes = {each.settings.target.host: _lane_there(team, engine, each) for each in setups}
    unlike: set[str] = set()

    def find_more() -> list[Lane]:
        """Return the lanes of workers that have come since; those that are unlike are named once."""
        more = []
        new = engine.find_hosts().keys() - lanes.keys() - unlike if hosts is None else ()
        for host in sorted(new):
            try:
                introduced = engine.introduce(host)
                with team.shared.turn.taken():
                    setup = request.admit(team, introduced.setup, setups[0].space)
            except TunerError as error:
                unlike.add(host)
                request.progress.note(f"{host}: {error}")
                continue
            lanes[host] = _lane_there(team, engine, setup)
            more.append(lanes[host])
        return more

    drive_all(team, [*lanes.values()], find_more, ends_with_host=hosts is not None)


def drive_all(
    team: Team,
    lanes: Sequence[Lane],
    find_more: Callable[[], Sequence[Lane]] = tuple,
    *,
    ends_with_host: bool = True,
) -> None:
    """Drive all hosts to the verdict. Raises what ended the study without one.

    Args:
        team: what they have in common.
        lanes: the hosts.
        find_more: returns those that have come since.
        ends_with_host: whether the study ends where one host is given up.
    """
    with ThreadPoolExecutor(max_workers=MOST_HOSTS, thread_name_prefix="tuner") as pool:
        driven = {pool.submit(lane.drive) for lane in lanes}
        try:
            while driven or not team.is_over.is_set():
                if not driven:
                    team.is_over.wait(LOOK_S)
                done, driven = wait(driven, LOOK_S, FIRST_COMPLETED)
                for each in done:
                    try:
                        each.result()
                    except TargetError as error:
                        if ends_with_host:
                            raise
                        team.progress.note(str(error))
                if not team.is_over.is_set():
                    driven |= {pool.submit(lane.drive) for lane in find_more()}
        except BaseException as error:
            with uninterrupted():
                team.stop(error)
                pool.shutdown()
            raise
