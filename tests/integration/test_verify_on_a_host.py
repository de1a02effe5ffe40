"""A winner on a host over SSH: applied, looked for, changed by somebody else, measured anew."""

from pathlib import Path

import pytest

import tuner
from benchmarks.faults.look import look_at
from tests.finished_study import finish
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tests.testbed.processors import idle_processors
from tuner import plugins
from tuner.commands.apply import apply_winner
from tuner.commands.regression.verify import Remeasuring, verify
from tuner.commands.session import Reading
from tuner.report.regression import Verification
from tuner.restore.journal import open_journal
from tuner.restore.recovery import confirm

STUDY = """\
study: web
servers: [nginx, sysctl]
space: [nginx, sysctl-net, {{only: [worker_connections, sendfile, tcp_nodelay, net.core.somaxconn]}}]
target: {{host: "{url}", mode: managed, watchdog_s: 60}}
budget: {{preset: quick}}
load: {{generator: wrk, path: /page.html, connections: 8}}
"""
WINNER = {"worker_connections": 2000, "tcp_nodelay": True, "net.core.somaxconn": 5000}
LASTING = "etc/sysctl.d/99-tuner.conf"


@pytest.fixture
def web(own_bed: Testbed) -> TestHost:
    """A host whose nginx sends header and file in two packets, the second after a delayed ACK."""
    host = own_bed.add_host("web")
    main = host.root / "etc/nginx/nginx.conf"
    lines = [
        each for each in main.read_text().splitlines() if "tcp_no" not in each and "sendfile" not in each
    ]
    late = "http {\n\tsendfile on;\n\ttcp_nopush off;\n\ttcp_nodelay off;"
    main.write_text("\n".join(lines).replace("http {", late, 1) + "\n")
    page = host.root / "var/www/html/page.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("late\n" * 100)
    host.install_nginx()
    return host


@pytest.fixture
def reading(web: TestHost, tmp_path: Path) -> Reading:
    """A study of that host which has its winner."""
    path = tmp_path / "web.yaml"
    path.write_text(STUDY.format(url=web.ssh_url))
    finish(tuner.load_study(path), WINNER)
    return tuner.read(tuner.load_study(path), with_explanation=False)


def keep(web: TestHost) -> None:
    """Confirm what was applied, as the command does."""
    target = plugins.make_host(web.ssh_url)
    with open_journal() as journal:
        confirm(target, journal)


def name_drifted(found: Verification) -> set[str]:
    return {each.name for each in found.drifted}


def test_what_was_applied_is_looked_for_and_what_drifted_is_named(reading: Reading, web: TestHost):
    before = verify(reading)
    apply_winner(reading, host_name=web.ssh_url, url=None, confirm_within_s=600)
    unconfirmed = verify(reading)
    keep(web)
    in_force, looked = look_at(web), verify(reading, host=web.ssh_url)
    after = look_at(web)
    (web.root / LASTING).unlink()
    unlasting = verify(reading)
    web.run(["sysctl", "-qw", "net.core.somaxconn=4000"])
    main = web.root / "etc/nginx/nginx.conf"
    main.write_text(main.read_text().replace("worker_connections 2000", "worker_connections 1000"))
    drifted = verify(reading)

    assert (before.verdict, name_drifted(before) >= WINNER.keys()) == ("drifted", True)
    assert unconfirmed.verdict == "active"
    assert any("(apply)" in each for each in unconfirmed.remarks), "nobody has confirmed it"
    assert looked.verdict == "active"
    assert {each.name: each.found for each in looked.settings}.items() >= WINNER.items()
    assert (looked.remarks, looked.changed) == ((), ())
    assert after == in_force, "it only looks"
    assert unlasting.verdict == "active"
    (remark,) = unlasting.remarks
    assert "net.core.somaxconn = 5000 is missing in /etc/sysctl.d/99-tuner.conf" in remark
    assert drifted.verdict == "drifted"
    assert name_drifted(drifted) == {"worker_connections", "net.core.somaxconn"}


def test_the_gain_is_measured_on_the_host_which_is_as_before_then(reading: Reading, web: TestHost):
    apply_winner(reading, host_name=web.ssh_url, url=None, confirm_within_s=600)
    keep(web)
    before = look_at(web)

    with idle_processors(web):
        found = verify(reading, measure=Remeasuring(pairs=3))

    assert found.verdict == "holds"
    assert found.measured is not None
    assert found.measured.comparison is not None
    assert found.measured.comparison.gain.low > 1
    first = found.measured.comparison.first.config
    assert first["tcp_nodelay"] is False, "as it was before the winner"
    assert look_at(web) == before
