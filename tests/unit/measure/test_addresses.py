"""Many connections over several addresses: what each generator sends, and where."""

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tuner.errors import TargetError
from tuner.hosts.connection_room import RANGE
from tuner.hosts.load_places import LoadPlace
from tuner.measure.addresses import spread
from tuner.measure.sending import Share
from tuner.ports import FileState, Workload
from tuner.testing.fakes import MemoryHost, completed

EVERYWHERE = "LISTEN 0 511 0.0.0.0:8080 0.0.0.0:*\n"
ONE_ADDRESS = "LISTEN 0 511 127.0.0.1:8080 0.0.0.0:*\n"


def share(connections: int, *, listens: str = EVERYWHERE, private: bool = True, **more: object) -> Share:
    host = MemoryHost(commands={"ss": lambda _host, argv, _stdin: completed(argv, stdout=listens.encode())})
    place = LoadPlace(host=host, directory=PurePosixPath("/load"), has_private_network=private)
    workload = Workload(
        url="http://127.0.0.1:8080/index.html", connections=connections, keepalive=True, duration_s=1.0,
        threads=2, directory=place.directory,
    )  # fmt: skip
    return Share(place=place, workload=replace(workload, **more))


@pytest.mark.parametrize(
    ("connections", "keepalive", "given"),
    [
        (100, True, [100]),
        (14_116, True, [14_116]),
        (20_000, True, [10_000, 10_000]),
        (7058, False, [7058]),
        (20_001, False, [6667, 6667, 6667]),
    ],
)
def test_no_address_gets_more_than_half_of_its_ports(connections, keepalive, given):
    parts = spread([share(connections, keepalive=keepalive)])

    assert [part.workload.connections for part in parts] == given
    hosts = [part.workload.url.split("/")[2] for part in parts]
    assert hosts == [f"127.0.0.{number}:8080" for number in range(1, len(given) + 1)]
    assert len({part.workload.directory for part in parts}) == len(given)
    assert all(part.workload.threads <= 2 for part in parts)


def test_a_rate_is_shared_out_like_the_connections():
    parts = spread([share(20_000, rate_rps=1000.0)])

    assert [part.workload.rate_rps for part in parts] == [500.0, 500.0]


def test_a_narrower_range_of_ports_takes_more_addresses():
    narrow = share(10_000)
    narrow.place.host.files[RANGE] = FileState(content=b"50000 59999")

    assert len(spread([narrow])) == 2


def test_an_installed_server_is_asked_at_its_own_address_alone():
    (part,) = spread([share(20_000, private=False)])

    assert part.workload.connections == 20_000


def test_a_server_that_listens_on_one_address_is_named_with_what_it_bears():
    with pytest.raises(TargetError, match=r"listens on 127\.0\.0\.1:8080 only.*to 14,116"):
        spread([share(20_000, listens=ONE_ADDRESS)])
