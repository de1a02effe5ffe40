"""How many connections a load host can hold, and what is said when more are asked for."""

from pathlib import PurePosixPath

import pytest

from tuner.errors import UsageError
from tuner.hosts.connection_room import (
    RANGE,
    SPARE_FILES,
    SPARE_PORTS,
    UNBOUNDED,
    add_rooms,
    find_room,
    read_ports,
)
from tuner.hosts.machine import Machine, Share
from tuner.ports import FileState
from tuner.testing.fakes import MemoryHost


def machine(*, open_files: int = 1_048_576, memory_mib: int = 8000) -> Machine:
    return Machine(
        name="box", kernel="6.1", cpu="", cpus=(0, 1), share=Share(), memory_total_mib=memory_mib,
        open_files_max=open_files, nr_open=1_048_576, somaxconn=4096, boot_id="",
    )  # fmt: skip


def test_a_usual_machine_holds_20_000_connections():
    find_room(machine()).refuse(20_000)
    UNBOUNDED.refuse(20_000)


@pytest.mark.parametrize(
    ("room", "most", "said"),
    [
        (find_room(machine(open_files=4096)), 4096 - SPARE_FILES, "may open 4,096 files.*ulimit -Hn"),
        (find_room(machine(memory_mib=512)), 8192, "half of the 512 MiB of box.*more memory"),
        (
            find_room(machine(), ports=6000),
            6000 - SPARE_PORTS,
            r"box has 6,000 local ports.*ip_local_port_range.*load\.host",
        ),
    ],
)
def test_what_runs_out_first_is_the_limit_and_is_named_with_the_remedy(room, most, said):
    room.refuse(most)

    with pytest.raises(UsageError, match=f"{most + 1:,} connections are too many: .*{said}.* to {most:,}"):
        room.refuse(most + 1)


def test_hosts_that_share_the_connections_have_room_for_more():
    both = add_rooms([find_room(machine(), ports=6000), find_room(machine(), ports=8000)])

    both.refuse(8000)
    with pytest.raises(UsageError, match="lower --connections to 8,000"):
        both.refuse(8001, "--connections")


def test_local_ports_are_counted_from_the_first_to_the_last():
    host = MemoryHost(files={PurePosixPath(RANGE): FileState(content=b"32768\t60999\n")})

    assert read_ports(host) == 28_232
    assert read_ports(MemoryHost()) is None
