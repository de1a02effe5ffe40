"""What a winner makes of installed files when their adapter refuses a part of it."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.adapters.servers.apache import layouts as apache
from tests.unit.adapters.servers.h2o import test_installation as h2o
from tests.unit.adapters.servers.nginx import layouts as nginx
from tests.unit.adapters.servers.php_fpm import layouts as php_fpm
from tuner.commands.differences import rewrite_accepted
from tuner.errors import ConfigRejected
from tuner.plugins import make_installed_server
from tuner.ports import Config, Facts, Files, Installation, Scalar

MAIN = PurePosixPath("/etc/server.conf")
NAMES = "abcdef"


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
                    f"server: {name} needs {', '.join(sorted(missing))}. Take it out of the space."
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
