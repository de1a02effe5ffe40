"""The engine of a fleet as its controller sees it: a scheduler, and an executor for each target."""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, fire_and_forget
from distributed.security import Security

from tuner.campaign.trial import Keep, TrialOutcome, TrialTask
from tuner.campaign.turn import Turn
from tuner.commands.fleet.worker import (
    CONNECT_S,
    Answer,
    Introduction,
    introduce,
    name_resource,
    read_resource,
    release,
    run_trial,
    understood_address,
    wait_until_quiet,
)
from tuner.errors import TargetError, Unreachable
from tuner.shell_words import write_command
from tuner.study import Study
from tuner.study.folder import SCHEDULER, read_file, write_file

LOOK_S = 1.0
"""Between two looks whether a trial still can end."""
PATIENCE_S = 900.0
"""A host that has no worker for so long is given up."""
LOCAL = "127.0.0.1"
CLIENT_KEYS = ("tls_ca_file", "tls_client_cert", "tls_client_key")


@dataclass(slots=True, kw_only=True)
class Engine:
    """A scheduler that the controller is connected to."""

    client: Client
    address: str
    security: Security | None
    """Keys by which workers are let in."""
    _looked_s: float = -LOOK_S
    _found: dict[str, float] = field(default_factory=dict)

    def find_hosts(self) -> dict[str, float]:
        """Return the hosts that have a worker, each with the seconds since that was heard of."""
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s, self._found = time.monotonic(), self._look()
        return self._found

    def _look(self) -> dict[str, float]:
        now_s, found = time.time(), dict[str, float]()
        for worker in self.client.scheduler_info(n_workers=-1)["workers"].values():
            for resource in worker["resources"]:
                if host := read_resource(resource):
                    found[host] = now_s - worker["last_seen"]
        return found

    def wait_for_hosts(self, wanted: Collection[str] | None, note: Callable[[str], None]) -> Collection[str]:
        """Wait for the workers of all hosts that are wanted, or of any. Raises TargetError after a while."""
        deadline_s, is_told = time.monotonic() + PATIENCE_S, False
        while True:
            found = self.find_hosts()
            missing = sorted(set(wanted) - found.keys()) if wanted is not None else []
            if found and not missing:
                return found if wanted is None else wanted
            said = f"{self.address}: no worker has connected for {', '.join(missing) or 'any host'}"
            if time.monotonic() > deadline_s:
                start = write_command("tuner", "worker", "STUDY", "--scheduler", self.address)
                raise TargetError(f"{said}. Start a worker: {start}")
            if not is_told:
                note(f"{said} yet; waiting")
                is_told = True
            time.sleep(LOOK_S)

    def introduce(self, host: str) -> Introduction:
        """Ask a worker for what is to be known of its host. Raises TargetError where it does not answer."""
        future = self.client.submit(introduce, host, resources={name_resource(host): 1}, pure=False)
        try:
            introduction: Introduction | None = future.result(timeout=PATIENCE_S)
        except (KilledWorker, TimeoutError) as error:
            raise Unreachable(f"{host}: the worker of this host does not answer.") from error
        if introduction is None:
            raise Unreachable(f"{host}: the worker of this host sent no description of the host.")
        return introduction

    def watch(self, host: str) -> Callable[[], None]:
        """Return what raises TargetError where a host has had no worker for a while."""
        seen_s = time.monotonic()

        def check() -> None:
            nonlocal seen_s
            now_s = time.monotonic()
            if host in self.find_hosts():
                seen_s = now_s
            elif now_s - seen_s > PATIENCE_S:
                raise Unreachable(f"{host}: the worker of this host is no longer connected.")

        return check

    def watch_own(self, host: str, check_process: Callable[[], None]) -> Callable[[], None]:
        """Return what raises TargetError where a worker that the controller has begun has ended or is lost.

        One that is frozen while it has nothing to do fails no trial: the next one would wait for it.
        """
        was_found = False

        def check() -> None:
            nonlocal was_found
            check_process()
            is_found = host in self.find_hosts()
            if was_found and not is_found:
                raise Unreachable(f"{host}: the worker of this host does not answer any more.")
            was_found = is_found

        return check

    def release(self, host: str) -> None:
        """Let a worker give its host back."""
        fire_and_forget(self.client.submit(release, host, resources={name_resource(host): 1}, pure=False))


@contextmanager
def open_engine(watchdog_s: float) -> Iterator[Engine]:
    """Start a scheduler in this process. Workers come by a key that nobody else on this machine has.

    Args:
        watchdog_s: a worker that is silent for so long is taken for lost.
    """
    security = Security.temporary()
    settings = {
        # The study itself begins again what was lost: it remembers that when the scheduler is gone.
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.worker-ttl": watchdog_s,
        "distributed.scheduler.work-stealing": False,
        "distributed.worker.profile.enabled": False,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=0, host=LOCAL, security=security, dashboard_address=None,
            # Any port: of several studies, each would want Dask's own, 8787.
            scheduler_kwargs={"dashboard_address": f"{LOCAL}:0"}, silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, security=security) as client,
    ):  # fmt: skip
        yield Engine(client=client, address=cluster.scheduler_address, security=security)


@contextmanager
def connect_engine(address: str, security: Security | None = None) -> Iterator[Engine]:
    """Connect to a scheduler, by the keys that Dask is configured with or others. Raises TargetError."""
    security = security or Security()
    with understood_address(address):
        client = Client(address, security=security, timeout=CONNECT_S)
    with client:
        yield Engine(client=client, address=address, security=security)


@contextmanager
def shown(engine: Engine, settings: Study) -> Iterator[None]:
    """Let this user's own commands find the scheduler of a study."""
    path, security = settings.folder / SCHEDULER, engine.security
    if security is not None:
        keys = {name: getattr(security, name) for name in CLIENT_KEYS}
        content = json.dumps({"address": engine.address, "keys": keys}).encode()
        write_file(path, content, study_folder=settings.folder, is_private=True)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def read_silences(settings: Study, scheduler: str | None) -> dict[str, float]:
    """Return for how long the worker of each host is silent; nothing where the study's own scheduler is gone.

    Raises TargetError where the one that is named cannot be reached.
    """
    if scheduler is not None:
        with connect_engine(scheduler) as engine:
            return engine.find_hosts()
    try:
        told = json.loads(read_file(settings.folder / SCHEDULER, study_folder=settings.folder))
        with connect_engine(told["address"], Security(**told["keys"], require_encryption=True)) as engine:
            return engine.find_hosts()
    except (OSError, TargetError, ValueError, KeyError, TypeError):
        return {}


class _NotThere(Exception):
    """A result that is nowhere now, though its trial was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteExecutor:
    """Runs trials by the worker of a target; others decide meanwhile."""

    host: str
    client: Client
    turn: Turn
    check: Callable[[], None]
    """Raises TargetError where no worker will come to the target any more."""
    note: Callable[[str], None]

    def measure(self, task: TrialTask, keep: Keep) -> TrialOutcome:
        """Run a trial; its windows are handed over when all of it is over."""
        answer: Answer = self._ask(run_trial, task)
        for text in answer.notes:
            self.note(text)
        for window in answer.windows:
            keep(window)
        return answer.measured

    def wait_until_quiet(self, most_s: float) -> bool:
        """Wait until other programs leave the target alone; return whether they do."""
        return bool(self._ask(wait_until_quiet, most_s))

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401 - those of the function, and what it returns
        with self.turn.others_turn():
            is_over = Event()
            future = self.client.submit(
                function, self.host, *arguments, resources={name_resource(self.host): 1}, pure=False
            )
            future.add_done_callback(lambda _: is_over.set())
            try:
                while True:
                    if is_over.wait(LOOK_S):
                        with suppress(_NotThere):
                            return self._read(future)
                    if self.turn.is_stopped:
                        return None
                    self.check()
            finally:
                future.cancel()

    def _read(self, future: Future[Any]) -> Any:  # noqa: ANN401 - whatever was computed
        """Return a result. Raises _NotThere, Unreachable where it never comes, or what the task raised."""
        if future.cancelled():
            raise Unreachable(f"{self.host}: tuner lost the connection to its Dask scheduler.")
        try:
            return future.result(timeout=LOOK_S)
        except TimeoutError as error:
            # A worker that ends right after its trial takes the result along: Dask waits for another one.
            if future.status == "error":
                raise
            raise _NotThere from error
        except KilledWorker as error:
            raise Unreachable(f"{self.host}: tuner lost the worker of this host during a trial.") from error
