"""What a winner makes of installed files when their adapter refuses a part of it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.adapters.servers.apache import layouts as apache
from tests.unit.adapters.servers.h2o import layouts as h2o
from tests.unit.adapters.servers.nginx import layouts as nginx
from tests.unit.adapters.servers.php_fpm import layouts as php_fpm
from tests.unit.simulated_study import make_summary
from tests.unit.simulation import make_setup, space_of, write_study
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.nginx import Nginx
from tuner.commands.differences import describe_moved, find_differences, rewrite_accepted
from tuner.commands.session import Reading
from tuner.errors import ConfigRejected
from tuner.export import Rendered, Rewritten
from tuner.plugins import make_installed_server
from tuner.ports import Config, Facts, Files, Installation, Scalar
from tuner.space import SpaceFacts, load_space
from tuner.testing.fakes import Command, completed

MAIN = PurePosixPath("/etc/server.conf")
NAMES = "abcdef"
FACTS = {"cores": 2, "memory_mib": 4096, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096}


TWICE = b"events{}http{keepalive_requests 9;keepalive_requests 9;server{listen 80;}}"
KERNEL = Installation(facts=Facts(current={"net.core.somaxconn": 4096}), files={}, service=None)
INSTALLED: dict[str, tuple[Installation, dict[str, Scalar], dict[str, Scalar]]] = {
    "nginx": (
        nginx.find("nginx", {nginx.MAIN: TWICE}),
        {"sendfile": True, "worker_processes": 3},
        {"keepalive_requests": 1000},
    ),
    "apache": (
        apache.find(apache.DEBIAN),
        {"KeepAliveTimeout": 9, "ListenBacklog": 700},
        {"CustomLog": False},
    ),
    "h2o": (h2o.find(h2o.DEBIAN), {"num-threads": 3}, {"access-log": "off"}),
    "php-fpm": (php_fpm.find_pool(php_fpm.BOOKWORM), {"pm.max_children": 9}, {"pm.no_such": 1}),
    "sysctl": (KERNEL, {"net.core.somaxconn": 5000}, {"net.ipv4.tcp_fin_timeout": 9}),
}


@pytest.mark.parametrize("server", INSTALLED)
@pytest.mark.parametrize("is_first", [True, False])
def test_of_every_server_the_rest_is_written_when_one_setting_is_refused(
    server: str, *, is_first: bool
) -> None:
    installation, accepted, refused = INSTALLED[server]
    adapter = make_installed_server(server)
    config = {**refused, **accepted} if is_first else {**accepted, **refused}

    files, reasons = rewrite_accepted(lambda part: adapter.rewrite(part, installation), config)

    assert files
    assert files == adapter.rewrite(accepted, installation)
    assert reasons.keys() == refused.keys()
    assert all(reason.startswith(f"{server}: ") and not reason.endswith(".") for reason in reasons.values())


def make_adapter(needs: dict[str, set[str]]):
    """Make a rewrite that refuses a setting without those that it needs; one that needs itself always."""

    def rewrite(config: Config) -> Files:
        for name in config:
            if missing := needs.get(name, set()) - (config.keys() - {name}):
                raise ConfigRejected(
                    f"server: {name} needs {', '.join(sorted(missing))}. Remove it from the search space."
                )
        return {MAIN: " ".join(sorted(config)).encode()}

    return rewrite


def test_what_is_refused_is_named_with_the_reason_and_costs_nothing_else() -> None:
    files, refused = rewrite_accepted(make_adapter({"b": {"b"}}), dict.fromkeys("abc", 1))

    assert files == {MAIN: b"a c"}
    assert refused == {"b": "server: b needs b"}


@pytest.mark.parametrize("order", ["abcz", "zcba", "czab"])
def test_a_setting_that_needs_another_is_accepted_in_any_order(order: str) -> None:
    files, refused = rewrite_accepted(
        make_adapter({"a": {"b"}, "b": {"c"}, "z": {"z"}}), dict.fromkeys(order, 1)
    )

    assert files == {MAIN: b"a b c"}
    assert refused.keys() == {"z"}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES), max_size=2)),
    st.lists(st.sampled_from(NAMES), unique=True),
)
def test_each_setting_is_in_the_files_or_named_and_no_more_would_be_accepted(
    needs: dict[str, set[str]], names: list[str]
) -> None:
    rewrite = make_adapter(needs)
    files, refused = rewrite_accepted(rewrite, dict.fromkeys(names, 1))

    written = set(files[MAIN].decode().split())
    assert written | refused.keys() == set(names)
    assert written.isdisjoint(refused)
    assert all(refused.values())
    for name in refused:
        with pytest.raises(ConfigRejected):
            rewrite(dict.fromkeys((*written, name), 1))


def change_private_h2o(
    tmp_path: Path, text: str, *, link: str = "", **winning: Scalar
) -> Rendered | Rewritten:
    """Find what a private winner makes of this installed configuration; `link` is where it really lies."""
    facts = SpaceFacts(names=FACTS, versions={"h2o": (2, 2, 5)})
    space = load_space(["h2o", {"allow": ["semantic"]}], facts=facts, base=tmp_path)
    host = h2o.make_host(text)
    real = (link or str(h2o.MAIN)).encode()
    host.commands["readlink"] = lambda _host, argv, _stdin: completed(argv, stdout=real + b"\n")
    if not text:
        del host.files[h2o.MAIN]
    setup = replace(
        make_setup(write_study(tmp_path), space), host=host, servers={"h2o": H2o()}, facts={"h2o": Facts()}
    )
    reading = Reading(settings=setup.settings, space=space, summary=make_summary(searches=4), setup=setup)
    config = space.complete({name.replace("_", "-"): value for name, value in winning.items()})
    return find_differences(reading, setup, config)["h2o"]


def test_a_private_winner_is_put_into_the_files_that_are_installed(tmp_path: Path) -> None:
    found = change_private_h2o(tmp_path, h2o.DEBIAN, num_threads=3, access_log="off")

    assert isinstance(found, Rewritten)
    assert found.before == {h2o.MAIN: h2o.DEBIAN.encode()}
    assert found.after == {h2o.MAIN: b"num-threads: 3\n" + h2o.DEBIAN.encode()}
    assert found.directory == h2o.MAIN.parent
    assert found.by_hand.keys() == {"access-log"}


def test_names_in_a_patch_begin_at_the_root_when_a_link_leads_out_of_the_servers_directory(
    tmp_path: Path,
) -> None:
    found = change_private_h2o(tmp_path, h2o.DEBIAN, link="/srv/h2o.conf", num_threads=3)

    assert isinstance(found, Rewritten)
    assert found.after.keys() == found.before.keys() == {PurePosixPath("/srv/h2o.conf")}
    assert found.directory == PurePosixPath("/")


@pytest.mark.parametrize(
    ("text", "winning", "reason"),
    [
        ("", {"num_threads": 3}, "the file /etc/h2o/h2o.conf does not exist"),
        (h2o.DEBIAN, {"access_log": "off"}, "'access-log' is no setting that tuner changes here"),
    ],
)
def test_where_the_installed_files_cannot_be_changed_the_instances_own_are_compared(
    tmp_path: Path, text: str, winning: dict[str, Scalar], reason: str
) -> None:
    found = change_private_h2o(tmp_path, text, **winning)

    assert isinstance(found, Rendered)
    assert reason in found.reason
    assert found.default != found.winner


def change_private_nginx(
    tmp_path: Path, text: bytes, answers: Mapping[str, Command] = MappingProxyType({}), **winning: Scalar
) -> Rewritten:
    """Find what a private winner makes of this installed nginx.conf, on a host that answers commands so."""
    space = space_of()
    host = nginx.make_host({nginx.MAIN: text})
    host.commands.update(answers)
    host.commands["readlink"] = lambda _host, argv, _stdin: completed(
        argv, stdout=b"%s\n" % bytes(nginx.MAIN)
    )
    setup = replace(
        make_setup(write_study(tmp_path), space), host=host, servers={"nginx": Nginx()},
        facts={"nginx": Facts()},
    )  # fmt: skip
    reading = Reading(settings=setup.settings, space=space, summary=make_summary(searches=4), setup=setup)
    found = find_differences(reading, setup, space.complete(winning))["nginx"]
    assert isinstance(found, Rewritten)
    return found


RAISED = b"""\
worker_rlimit_nofile 65536;
events { worker_connections 4096; }
http { sendfile off; server { listen 80; } }
"""


def test_what_the_winner_leaves_at_its_default_stays_as_an_administrator_raised_it(tmp_path: Path) -> None:
    found = change_private_nginx(tmp_path, RAISED, open_file_cache=1000)

    text = found.after[nginx.MAIN].decode()
    assert "worker_connections 4096;" in text
    assert "worker_rlimit_nofile 65536;" in text
    assert "sendfile off;" in text
    assert "open_file_cache max=1000" in text
    assert found.lowered == {}


def test_what_a_private_winner_lowers_is_named_and_its_limit_of_open_files_is_not_lowered(
    tmp_path: Path,
) -> None:
    found = change_private_nginx(tmp_path, RAISED, worker_connections=1024)

    text = found.after[nginx.MAIN].decode()
    assert "worker_connections 1024;" in text
    assert "worker_rlimit_nofile 65536;" in text
    assert found.lowered == {"worker_connections": (4096, 1024)}


def test_a_private_winner_raises_the_limits_of_the_installed_unit(tmp_path: Path) -> None:
    shown = b"LimitNOFILE=1024\nTasksMax=4915\n"
    answers = {
        "test": lambda _host, argv, _stdin: completed(argv),
        "systemctl": lambda _host, argv, _stdin: completed(argv, stdout=shown),
    }

    found = change_private_nginx(tmp_path, RAISED, answers, worker_connections=8192)

    unit = PurePosixPath("/etc/systemd/system/nginx.service.d/zz-tuner.conf")
    limits = dict(re.findall(r"(\w+)=(\d+)", found.after[unit].decode()))
    assert int(limits["LimitNOFILE"]) > 8192
    assert unit not in found.before
    assert found.directory == PurePosixPath("/")


def test_what_a_private_instance_does_not_tell_of_the_installed_sites_is_said(tmp_path: Path) -> None:
    named = b"server { server_name shop.example; location /a { keepalive_requests 7; }"
    text = RAISED.replace(b"server {", named)

    found = change_private_nginx(tmp_path, text, keepalive_requests=5000, worker_connections=8192)
    plain = change_private_nginx(tmp_path, b"events {} http { server { listen 80; } }", open_file_cache=1000)

    site, unlike, deeper = found.doubts
    assert site.startswith(
        "nginx: http://shop.example/ was never measured; the study measured only a private instance."
    )
    assert "worker_connections 4096 instead of 768" in unlike
    assert deeper.startswith(
        f"keepalive_requests: {nginx.MAIN}:3 set this as well; requests that these parts"
    )
    assert plain.doubts == ()


def test_another_machine_than_the_measured_one_is_named(tmp_path: Path) -> None:
    setup = make_setup(write_study(tmp_path), space_of())
    reading = Reading(settings=setup.settings, space=setup.space, summary=make_summary(searches=4))
    other = replace(setup, fingerprint=replace(setup.fingerprint, host="web2"))

    assert [*describe_moved(reading, setup)] == []
    assert [*describe_moved(reading, other)] == [
        "the study measured web1, and never web2. The gain on web2 may differ"
    ]
