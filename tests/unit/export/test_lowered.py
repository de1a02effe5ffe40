"""What an administrator raised is not lowered in silence by a winner that was found beside it."""

from io import StringIO
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tests.unit.simulation import space_of
from tuner.adapters.servers.apache.builds import DEBIAN, write_place
from tuner.export import Rendered, Rewritten, export
from tuner.export.lowered import describe_lowered, find_lowered, keep_limits
from tuner.ports import Scalar
from tuner.report.terminal import final_screen
from tuner.space import SpaceFacts, load_space

NGINX = space_of()
APACHE = load_space(
    ["apache-event"],
    facts=SpaceFacts(
        names={
            "cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096,
        },
        versions={"apache": (2, 4, 62)},
    ),
    base=Path("/"),
)  # fmt: skip
FILE = PurePosixPath("/etc/server.conf")
SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")


@pytest.mark.parametrize(
    ("space", "installed", "written", "lowered"),
    [
        (NGINX, {"worker_connections": 4096}, {"worker_connections": 1024}, {"worker_connections"}),
        (NGINX, {"worker_connections": 768}, {"worker_connections": 1024}, set()),
        (NGINX, {"worker_connections": 1024}, {"worker_connections": 1024}, set()),
        (NGINX, {}, {"worker_connections": 1024}, set()),
        # More than the space would search.
        (NGINX, {"worker_connections": 100_000}, {"worker_connections": 1024}, {"worker_connections"}),
        # Fewer workers hold fewer connections; the figure names what follows from them.
        (NGINX, {"worker_processes": 8}, {"worker_processes": 2}, {"worker_processes"}),
        (NGINX, {"worker_processes": "auto"}, {"worker_processes": 2}, set()),
        # Lower, and serves nobody less.
        (NGINX, {"keepalive_requests": 5000}, {"keepalive_requests": 1000}, set()),
        (NGINX, {"open_file_cache": 5000}, {"open_file_cache": 1000}, set()),
        (NGINX, {"sendfile": True}, {"sendfile": False}, set()),
        (APACHE, {"MaxRequestWorkers": 400}, {"MaxRequestWorkers": 150}, {"MaxRequestWorkers"}),
        (APACHE, {"ListenBacklog": 2000}, {"ListenBacklog": 511}, {"ListenBacklog"}),
        (APACHE, {"KeepAliveTimeout": 60}, {"KeepAliveTimeout": 5}, set()),
    ],
)
def test_a_lower_number_is_named_where_fewer_are_served_with_it(
    space, installed: dict[str, Scalar], written: dict[str, Scalar], lowered: set[str]
) -> None:
    found = find_lowered(space, written, installed)

    assert found.keys() == lowered
    assert all(pair == (installed[name], written[name]) for name, pair in found.items())


def test_limits_that_are_higher_where_they_are_installed_stay() -> None:
    config = {"worker_rlimit_nofile": 4096, "worker_connections": 2304}

    assert keep_limits(NGINX, config, {"worker_rlimit_nofile": 65536}) == {"worker_connections": 2304}
    assert keep_limits(NGINX, config, {"worker_rlimit_nofile": 1024}) == config
    assert keep_limits(NGINX, config, {"worker_connections": 9999}) == config


NUMBERS = st.integers(min_value=0, max_value=10**6)


@given(st.dictionaries(st.sampled_from(sorted(NGINX.default())), NUMBERS, max_size=6), NUMBERS)
def test_what_is_not_lower_is_never_named(installed: dict[str, Scalar], more: int) -> None:
    raised = {name: value + more for name, value in installed.items()}

    assert find_lowered(NGINX, raised, installed) == {}
    assert keep_limits(NGINX, raised, installed) == raised


def test_both_values_are_told_as_people_read_them() -> None:
    assert describe_lowered(NGINX, {"worker_connections": (4096, 1024)}) == [
        "lowers the installed value: worker_connections 4096 → 1024"
    ]


TOLD = "# lowers the installed value: worker_connections 4096 → 1024\n"


@pytest.mark.parametrize(
    ("server", "found"),
    [
        ("nginx", Rewritten(
            before={FILE: b"a\n"}, after={FILE: b"b\n"}, service=None,
            lowered={"worker_connections": (4096, 1024)},
        )),
        ("apache", Rendered(
            default={FILE: b"A 1\n"}, winner={FILE: b"A 2\n"}, drop_in=write_place(DEBIAN, "apache"),
            lowered={"worker_connections": (4096, 1024)},
        )),
        ("h2o", Rendered(
            default={FILE: b"a: 1\n"}, winner={FILE: b"a: 2\n"}, lowered={"worker_connections": (4096, 1024)},
        )),
        ("sysctl", Rewritten(
            before={SOMAXCONN: b"4096\n"}, after={SOMAXCONN: b"1024\n"}, service=None,
            lowered={"worker_connections": (4096, 1024)},
        )),
    ],
)  # fmt: skip
def test_every_kind_of_export_says_so_in_its_head(server: str, found: Rewritten | Rendered) -> None:
    files = export(make_summary(searches=4), server, rendered={server: found})

    assert TOLD in next(iter(files.values())).decode()


def test_the_last_screen_says_so_above_the_files() -> None:
    console = Console(record=True, width=80, force_terminal=False, color_system=None, file=StringIO())
    line = "lowers the installed value: worker_connections 4096 → 1024"
    console.print(final_screen(make_summary(searches=4), exports=["tuner-nginx.patch"], warnings=[line]))
    text = console.export_text()

    assert f"\n{line}\n" in text
    assert text.index(line) < text.index("tuner-nginx.patch")
