"""Real generators at several places at once: together they count what the server served."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.test_loads_with_servers import BODY, URL, serve_nginx
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.loads.ab import Ab
from tuner.adapters.loads.wrk import Wrk
from tuner.deploy.load_target import check_load_target
from tuner.errors import TargetError
from tuner.hosts.load_places import LoadPlace, find_generators, open_load_places
from tuner.hosts.url import parse_url
from tuner.measure.sending import send, share_out
from tuner.ports import FileState, Host, LoadGenerator, Sandbox, Workload

WORKLOAD = Workload(url=URL, connections=7, keepalive=False, duration_s=1.0, body_bytes=len(BODY), threads=2)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        opened.write(opened.directory / "content" / "page.html", FileState(content=BODY, mode=0o644))
        yield opened


def passive_opens(sandbox: Sandbox) -> int:
    """Read how many connections the kernel has accepted there."""
    content = sandbox.read(PurePosixPath(f"/proc/{sandbox.pid}/net/snmp")).content or b""
    names, values = re.findall(rb"^Tcp: (.+)$", content, re.MULTILINE)
    return int(dict(zip(names.split(), values.split(), strict=True))[b"PassiveOpens"])


@pytest.mark.parametrize("generator", [Wrk(), Ab()], ids=["wrk", "ab"])
def test_several_generators_together_count_what_the_server_served(sandbox, generator: LoadGenerator):
    serve_nginx(sandbox)
    names = ("one", "two", "three")
    places = [
        LoadPlace(host=sandbox, directory=sandbox.directory / name, is_on_target=True) for name in names
    ]

    before = passive_opens(sandbox)
    sent = send(generator, share_out(WORKLOAD, places))
    served = passive_opens(sandbox) - before

    result = sent.result
    assert result is not None, (sent.problem, sent.lost)
    assert result.correct > 100
    assert result.failures.total == 0
    # Each of 7 connections may have one more under way when the window ends, and each place probes once.
    assert result.correct <= served <= result.correct + 2 * (7 + 3)
    assert result.latency is not None
    assert result.latency.samples == pytest.approx(result.correct, abs=20)
    assert sent.target_cpu_s is not None
    assert 0 < sent.busy <= 1.2


def test_the_generator_of_this_machine_has_a_version():
    assert re.fullmatch(r"\d+\.\d+.*", find_generators(Wrk(), {"local": LocalHost()}))


def test_a_directory_of_a_load_place_is_its_owners_alone_and_gone_in_the_end():
    host = LocalHost()

    with open_load_places({"local": host}, host) as (place,):
        shown = host.run(("stat", "--format=%a", str(place.directory)), timeout_s=5).stdout
        host.write(place.directory / "wrk.lua", FileState(content=b"-- a script"))

    assert shown == b"700\n"
    assert place.is_on_target
    assert not Path(place.directory).exists()


def test_load_from_a_sandbox_does_not_arrive_at_the_host_around_it(sandbox):
    with pytest.raises(TargetError, match=r"127\.0\.0\.1, which is an address of the load host itself"):
        check_load_target(parse_url(URL), LocalHost(), {"inside": sandbox})


def test_load_from_a_sandbox_arrives_at_the_server_in_it(sandbox):
    assert check_load_target(parse_url("http://localhost:8080/"), sandbox, {"local": sandbox})


def test_a_page_that_the_server_serves_proves_where_it_is(sandbox):
    serve_nginx(sandbox)
    root = sandbox.directory / "content"
    # Another view of the target, from which its address cannot be told.
    elsewhere = LocalHost()

    said = check_load_target(
        parse_url(URL), Split(elsewhere, sandbox), {"gen": sandbox}, token_directory=root
    )

    assert f"serves the test file that tuner put into {root}" in said
    assert sandbox.run(("ls", str(root)), timeout_s=5).stdout == b"page.html\n"


class Split:
    """A host whose files are those of one, and whose network is that of another."""

    def __init__(self, network: Host, files: Host) -> None:
        self.name = "split"
        self.run_all = network.run_all
        self.write = files.write
        self.look = files.look
        self.read = files.read
