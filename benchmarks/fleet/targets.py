"""Simulated targets as workers of a Dask scheduler: many in each of a few processes.

What a controller sees of them is real: their connections, their tasks and their results.
"""

import asyncio
import logging
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, nullcontext
from tempfile import TemporaryDirectory

import dask
from distributed import Worker
from distributed.security import Security

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.servers import draw_server
from tests.integration.simulated_fleet import FastClock
from tests.unit.simulation import SimulatedExecutor
from tuner.commands.fleet.engine import Engine
from tuner.commands.fleet.worker import PLACES, Place, name_resource

PROCESSES = 2
QUIET = {
    "distributed.admin.system-monitor.interval": "10m",
    "distributed.admin.tick.interval": "10m",
    "distributed.worker.profile.enabled": False,
}
"""A worker of Dask looks after its process; many in one process would do nothing else."""


def name_hosts(count: int) -> list[str]:
    """Return names for so many targets."""
    return [f"ssh://web{number}" for number in range(count)]


@contextmanager
def open_targets(engine: Engine, hosts: Sequence[str], server: int, *, speed: float = 1.0) -> Iterator[None]:
    """Let targets of one drawn server connect to a scheduler.

    Args:
        engine: the scheduler.
        hosts: names of the targets.
        server: number of the drawn server.
        speed: simulated seconds that pass in a real one.
    """
    context = multiprocessing.get_context("spawn")
    begun = [
        context.Process(
            target=serve, args=(engine.address, engine.security, hosts[index::PROCESSES], server, speed)
        )
        for index in range(min(PROCESSES, len(hosts)))
    ]
    for each in begun:
        each.start()
    try:
        engine.client.wait_for_workers(len(hosts), timeout=600)
        yield
    finally:
        for each in begun:
            each.kill()
            each.join()


def serve(address: str, security: Security | None, hosts: Sequence[str], server: int, speed: float) -> None:
    """Be the workers of some targets until somebody ends the process."""
    logging.disable(logging.CRITICAL)
    with dask.config.set(QUIET), TemporaryDirectory(prefix="targets-") as folder:
        for name in hosts:
            host = DrawnHost(server=draw_server(server), seed=sum(name.encode()), clock=FastClock(speed))
            PLACES[name] = Place(executor=SimulatedExecutor(host=host), hold=lambda _: nullcontext())
        asyncio.run(_stay(address, security, hosts, folder))


async def _stay(address: str, security: Security | None, hosts: Sequence[str], folder: str) -> None:
    async with AsyncExitStack() as stack:
        workers = []
        for name in hosts:
            worker = Worker(
                address, name=name, nthreads=1, resources={name_resource(name): 1},
                executor=ThreadPoolExecutor(1), memory_limit=0, security=security, local_directory=folder,
                dashboard_address="127.0.0.1:0",
            )  # fmt: skip
            workers.append(await stack.enter_async_context(worker))
        await asyncio.gather(*(each.finished() for each in workers))
