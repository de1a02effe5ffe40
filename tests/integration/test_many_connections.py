"""Thousands of connections to real servers: all are opened and counted, and clients left outside are seen."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tuner.campaign.prepare import prepare
from tuner.deploy.deployment import Deployment
from tuner.errors import Stalled
from tuner.kit.readback import walk_processes
from tuner.measure import window as module
from tuner.measure.trial import NO_JUDGES, measure_trial
from tuner.measure.validity import RetryBudget
from tuner.measure.window import Load, run_window
from tuner.records import Window
from tuner.study import load_study
from tuner.study.presets import PRESETS

STUDY = """\
study: many
servers: [{server}]
space: [{space}]
load: {{generator: {generator}, connections: {connections}}}
"""
ROOMY = {
    # Sockets of their own, or one worker alone takes all that come at once.
    "nginx": {
        "worker_processes": 4, "worker_connections": 7000, "listen_backlog": 4096, "listen_reuseport": True,
    },
    # A process with none of its threads idle takes no connection on.
    "apache": {
        "ThreadsPerChild": 256, "Processes": 8, "StartServers": 8, "MaxSpareThreads": 2304,
        "ListenBacklog": 4096,
    },
}  # fmt: skip


@contextmanager
def deployed(
    folder: Path, server: str, connections: int, *, generator: str = "wrk", roomy: bool = False
) -> Iterator[tuple[Deployment, Load]]:
    """Start a private server with its own settings, or with room for many."""
    path = folder / "many.yaml"
    space = "apache-event" if server == "apache" else server
    path.write_text(STUDY.format(server=server, space=space, generator=generator, connections=connections))
    setup = prepare(load_study(path))
    config = setup.space.open().complete(ROOMY[server] if roomy else {})
    with setup.target.deploy(config) as deployment:
        yield deployment, setup.load


def load_for(seconds: float, deployment: Deployment, load: Load) -> Window:
    return run_window(deployment, load, seconds)


@pytest.fixture(autouse=True)
def _busy_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count connections, not speed: that works on a busy machine, too."""
    monkeypatch.setattr(module, "judge", lambda _: ())


@pytest.mark.parametrize(("server", "connections"), [("nginx", 10_000), ("apache", 2000)])
def test_a_server_with_room_takes_every_connection(tmp_path, server, connections):
    with deployed(tmp_path, server, connections, roomy=True) as (deployment, load):
        load_for(2.0, deployment, load)
        measured = load_for(3.0, deployment, load)

    # On a busy machine some may wait long, but none is left outside.
    assert measured.counters["passive_opens"] >= connections
    assert measured.failures.connect == measured.failures.status == 0
    assert measured.correct > connections / 2


@pytest.mark.more
@pytest.mark.alone  # how many of those outside are seen in three seconds depends on what else runs
def test_with_its_own_settings_apache_leaves_most_of_ten_thousand_outside_and_that_is_counted(tmp_path):
    with deployed(tmp_path, "apache", 10_000) as (deployment, load):
        measured = load_for(3.0, deployment, load)

    # It holds 450, and 511 wait in its listen queue; some are sent away, and others come in their place.
    assert measured.failures.total > 5000
    assert measured.failures.timeout > 3000
    assert measured.correct > 1000


def test_few_clients_that_all_fit_are_none_in_vain(tmp_path):
    with deployed(tmp_path, "nginx", 300) as (deployment, load):
        load_for(1.0, deployment, load)
        measured = load_for(1.0, deployment, load)

    assert measured.failures.total == 0


@pytest.mark.more
def test_two_generators_at_two_addresses_open_all_connections_between_them(tmp_path):
    with deployed(tmp_path, "nginx", 16_000, roomy=True) as (deployment, load):
        load_for(2.0, deployment, load)
        measured = load_for(3.0, deployment, load)

    assert measured.counters["passive_opens"] >= 16_000
    assert measured.failures.read == measured.failures.connect == 0
    # Each generator has counted its own: what arrived at the server is what they sent together.
    assert measured.bytes / measured.correct == pytest.approx(deployment.load.response_bytes, rel=0.01)
    assert measured.latency is not None
    assert sum(measured.latency.histogram.values()) == measured.latency.samples >= measured.correct
    assert 0.99 in measured.latency.quantiles_ms


@pytest.mark.more
@pytest.mark.parametrize("generator", ["ab", "h2load"])
def test_other_generators_open_thousands_of_connections_too(tmp_path, generator):
    with deployed(tmp_path, "nginx", 2000, generator=generator, roomy=True) as (deployment, load):
        measured = load_for(2.0, deployment, load)

    assert measured.counters["passive_opens"] >= 2000
    assert measured.correct > 2000


def test_a_server_that_stops_answering_under_load_is_cut_off_at_the_end_of_its_slice(tmp_path):
    with deployed(tmp_path, "apache", 300) as (deployment, load):
        run_window(deployment, load, 0.5)
        (pid,) = deployment.server_pids.values()
        for each in walk_processes(deployment.load_places[0].host, pid):
            os.kill(each, signal.SIGSTOP)
        began_s = time.monotonic()
        with pytest.raises(Stalled, match="no correct response in"):
            measure_trial(deployment, load, PRESETS["quick"], NO_JUDGES, RetryBudget(), lambda _: None)

    assert time.monotonic() - began_s < 60
