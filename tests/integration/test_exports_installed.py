"""Exports of managed studies, applied by hand on test hosts as their heads say, and undone."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.faults.look import look_at
from tests.more import leave_to_more
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tests.unit.simulated_study import make_summary
from tuner.campaign.prepare import prepare
from tuner.commands.outputs import write_export, write_results
from tuner.commands.session import Reading
from tuner.ports import Scalar
from tuner.report.summary import Summary
from tuner.study import load_study
from tuner.study.folder import make_folder
from tuner.study.open_storage import open_storage

STUDY = """\
study: managed
servers: [{server}]
space: [{space}]
target: {{host: "{url}", mode: managed}}
load: {{path: "http://{address}{page}"}}
"""
PAGES = {"h2o": "/html/"}
CHANGES: Mapping[str, tuple[str, dict[str, Scalar]]] = {
    "nginx": ("nginx", {"worker_processes": 3, "worker_connections": 4000, "listen_backlog": 700}),
    "apache": ("apache-event", {"ThreadsPerChild": 64, "ListenBacklog": 700}),
    "h2o": ("h2o", {"num-threads": 3, "max-connections": 2000}),
    "php-fpm": ("php-fpm", {"pm": "static", "pm.max_children": 7}),
}


@pytest.fixture
def host(own_bed: Testbed) -> TestHost:
    return own_bed.add_host("web")


@pytest.mark.parametrize("server", leave_to_more(CHANGES))
def test_an_export_is_in_force_as_its_head_says_and_its_undo_brings_every_byte_back(
    host: TestHost, tmp_path: Path, server: str
):
    host.install(server)
    before = look_at(host)
    space, changes = CHANGES[server]
    study = tmp_path / "study.yaml"
    page = PAGES.get(server, "/")
    study.write_text(
        STUDY.format(server=server, space=space, url=host.ssh_url, address=host.address, page=page)
    )
    setup = prepare(load_study(study))
    config = setup.space.complete(changes)
    reading = Reading(settings=setup.settings, space=setup.space, summary=with_winner(config), setup=setup)

    exports = {Path(path).name for path in write_results(reading).exports}
    written = write_export(reading, server, host.root / "root")
    assert exports == {*(path.name for path in written), "tuner.json", "tuner-undo.json"}
    patch, undo = (next(path for path in written if path.suffix == suffix) for suffix in (".patch", ".sh"))

    (how,) = re.findall(r"(?m)^# apply: (.*)$", patch.read_text())
    host.run(["sh", "-c", f"cd /root && {how}"])
    host.wait_until_it_answers(80)
    target = prepare(load_study(study)).target
    found = target.servers[0].installation.facts.current
    assert {name: found[name] for name in changes} == changes
    target.as_found()
    assert look_at(host) != before

    said = host.run(["sh", f"/root/{undo.name}"]).stdout.decode()
    (how,) = re.findall(r"(?m)^Stop and start the server now: (.*)$", said)
    host.run(["sh", "-c", how])
    host.wait_until_it_answers(80)
    assert look_at(host) == before


def test_files_that_changed_since_the_study_are_named_when_it_is_exported(host: TestHost, tmp_path: Path):
    host.install("nginx")
    study = tmp_path / "study.yaml"
    study.write_text(
        STUDY.format(server="nginx", space="nginx", url=host.ssh_url, address=host.address, page="/")
    )
    setup = prepare(load_study(study))
    summary = with_winner(setup.space.complete({"open_file_cache": 2000}))
    reading = Reading(settings=setup.settings, space=setup.space, summary=summary, setup=setup)
    make_folder(setup.settings.folder)
    open_storage(setup.settings.storage_url, setup.settings.name)
    write_results(reading)
    main = host.root / "etc/nginx/nginx.conf"
    main.write_text(main.read_text().replace("worker_connections 768", "worker_connections 1000"))
    said: list[str] = []

    write_export(replace(reading, setup=None), "nginx", tmp_path / "out", warn=said.append)

    assert any("changed since the study began: worker_connections 768 → 1000" in each for each in said)
    assert any(
        each.startswith("/etc/nginx/nginx.conf: this file changed after the end of the study")
        for each in said
    )


def with_winner(config: Mapping[str, Scalar]) -> Summary:
    summary = make_summary(searches=4)
    return replace(summary, winner=replace(summary.winner, config=dict(config)))
