"""Winners that nobody searched for, of studies of a test host: their space and their target are real."""

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from random import Random

from tests.testbed.host import PHP_PORT, TestHost
from tests.unit.simulated_study import make_summary
from tuner.campaign.prepare import Setup, prepare
from tuner.commands.session import Reading
from tuner.optimize.sparse import draw_sparse
from tuner.ports import Config
from tuner.study import load_study

STUDY = """\
study: managed
servers: [{servers}]
# A network namespace cannot have more of these than its machine, nor what that has not loaded.
space: [{spaces}, {{without: [net.ipv4.tcp_max_tw_buckets, net.ipv4.tcp_congestion_control]}}]
target: {{host: "{url}", mode: managed}}
load: {{path: "http://{address}{page}"}}
"""
WINNERS = int(os.environ.get("EXPORTED_WINNERS", "1"))
"""Random winners of each server; `make bench-exports` takes ten."""
SPACES = {
    "nginx": "nginx, sysctl-net", "apache": "apache-event, sysctl-net", "h2o": "h2o, sysctl-net",
    "php-fpm": "php-fpm, sysctl-net",
}  # fmt: skip
if WINNERS > 1:
    SPACES |= {name: f"{name}, sysctl-net" for name in ("apache-worker", "apache-prefork")}
PAGES = {"h2o": "/html/", "php-fpm": f":{PHP_PORT}/index.php"}
PORTS = {"php-fpm": PHP_PORT}


def draw_winner(setup: Setup, *, seed: str) -> Config:
    """Draw a configuration that changes a few settings, as a search does."""
    space, rng = setup.space, Random(seed)  # noqa: S311 - no secret
    default = space.default()
    drawn = (
        space.decode(draw_sparse(space.dimensions, space.encode(default), rng=rng)) for _ in repeat(None)
    )
    return next(config for config in drawn if space.changes(config))


def prepare_study(host: TestHost, server: str, folder: Path, *, servers: str = "") -> Setup:
    study = folder / "study.yaml"
    study.write_text(
        STUDY.format(
            servers=servers or f"{server}, sysctl", spaces=SPACES[server], url=host.ssh_url,
            address=host.address, page=PAGES.get(server, "/"),
        )
    )  # fmt: skip
    return prepare(load_study(study))


def read_winner(setup: Setup, config: Config) -> Reading:
    summary = make_summary(searches=4)
    summary = replace(
        summary, space=setup.space, changes=setup.space.changes(config), explanation=None,
        winner=replace(summary.winner, config=dict(config)),
    )  # fmt: skip
    return Reading(settings=setup.settings, space=setup.space, summary=summary, setup=setup)


def values_in_force(setup: Setup, names: Mapping[str, object]) -> dict[str, object]:
    """Read what is installed now, of these settings; files and running servers must agree."""
    target = prepare(setup.settings).target
    target.as_found()
    known = (each.installation.facts.current for each in target.servers)
    found = {name: value for each in known for name, value in each.items()}
    return {name: found[name] for name in names if name in found}
