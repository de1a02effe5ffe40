import json
from pathlib import Path

import pytest

from tests.unit.adapters.servers.golden import FOLDER
from tuner.adapters.servers.apache.mpm import DIRECTIVES
from tuner.adapters.servers.apache.protocols import HTTP2_SETTINGS
from tuner.errors import UsageError
from tuner.space import Space, SpaceFacts, describe_dead, describe_space, load_space

LINUX = json.loads((FOLDER / "sysctl" / "detect-linux-6.18.json").read_text())["facts"]["current"]


APACHES = ("apache-event", "apache-worker", "apache-prefork", "apache-mpm")


def load(
    *sources: object, cores: int = 2, online_cores: int | None = None, connections: int = 100, **facts: object
) -> Space:
    names = {
        "cores": cores,
        "online_cores": online_cores or cores,
        # What may be taken for connections ends at the memory; a machine of many CPUs has more of it.
        "memory_mib": max(8192, 2048 * cores),
        "connections": connections,
        "open_files_max": 1048576,
        "somaxconn": 4096,
    }
    return load_space(sources, facts=SpaceFacts(names=names, **{"current": LINUX, **facts}), base=Path())


def written(space: Space) -> dict:
    """Give what of the default reaches the servers' files."""
    return space.for_server(space.default(), space.parameters[0].server)


@pytest.mark.parametrize(
    ("name", "fewest"),
    [
        *(("apache-event", 15), ("apache-worker", 14), ("apache-prefork", 13), ("apache-mpm", 16)),
        *(("nginx", 22), ("sysctl-net", 20), ("haproxy", 20), ("caddy", 7)),
    ],
)
def test_a_space_has_enough_parameters_that_are_safe_to_tune(name, fewest):
    safe = [entry for entry in describe_space(name) if entry["kind"] != "derived" and entry["risk"] == "safe"]

    assert len(safe) >= fewest


@pytest.mark.parametrize("name", [*APACHES, "caddy", "h2o", "haproxy", "nginx", "sysctl-net"])
def test_every_setting_says_why_and_where_that_is_known_from(name):
    for entry in describe_space(name):
        assert entry["why"].endswith("."), entry["name"]
        assert entry["source"], entry["name"]


def test_the_default_of_apache_is_what_debian_ships():
    default = load("apache-event").default()

    assert {
        "StartServers": 2,
        "MinSpareThreads": 25,
        "MaxSpareThreads": 75,
        "ThreadLimit": 64,
        "ThreadsPerChild": 25,
        "MaxRequestWorkers": 150,
        "MaxConnectionsPerChild": 0,
        "ServerLimit": 16,
        "ListenBacklog": 511,
    }.items() <= default.items()


@pytest.mark.parametrize("name", ["apache-worker", "apache-prefork"])
def test_the_default_of_each_mpm_is_what_debian_ships(name):
    default = load(name).default()

    own = {
        "apache-worker": {
            "StartServers": 2, "MinSpareThreads": 25, "MaxSpareThreads": 75, "ThreadLimit": 64,
            "ThreadsPerChild": 25, "ServerLimit": 16,
        },
        "apache-prefork": {
            "StartServers": 5, "MinSpareServers": 5, "MaxSpareServers": 10, "ServerLimit": 256,
        },
    }  # fmt: skip
    assert {**own[name], "MaxRequestWorkers": 150, "MaxConnectionsPerChild": 0}.items() <= default.items()


def test_the_default_of_apache_with_any_mpm_is_that_of_event():
    event, free = load("apache-event"), load("apache-mpm")

    assert written(free) == {"MPM": "event", **written(event)}
    assert free.capacity(free.default())["apache-mpm"] == event.capacity(event.default())["apache"]


@pytest.mark.parametrize("mpm", ["worker", "prefork"])
def test_another_mpm_holds_as_many_connections_as_the_default(mpm):
    space = load("apache-mpm")
    config = space.complete({"MPM": mpm})

    assert space.capacity(config)["apache-mpm"]["connections"] == 450
    assert config["MaxRequestWorkers"] == 450


def test_an_mpm_has_only_the_directives_that_are_its_own():
    space = load("apache-mpm")
    own = {
        mpm: {name for name in space.complete({"MPM": mpm}) if "Spare" in name or "Thread" in name}
        for mpm in ("event", "worker", "prefork")
    }

    assert {"MinSpareServers", "MaxSpareServers"} <= own["prefork"]
    assert not own["prefork"] & {"ThreadsPerChild", "ThreadLimit", "ThreadStackSize", "MinSpareThreads"}
    assert own["worker"] == own["event"]
    assert not own["event"] & {"MinSpareServers", "MaxSpareServers"}


DIFFERENT = {
    # An idle connection holds a worker; how a pool of memory is used was looked at with event alone.
    "KeepAliveTimeout": {"why", "acts_source"},
    "MaxMemFree": {"why", "acts_when", "acts_source", "hint", "range"},
}


@pytest.mark.parametrize("name", APACHES[1:])
def test_what_all_mpms_share_is_described_word_for_word_in_all_spaces(name):
    event = {entry["name"]: entry for entry in describe_space("apache-event")}
    own = {entry["name"]: entry for entry in describe_space(name)}
    # Prefork serves no HTTP/2.
    of_an_mpm = {
        *DIRECTIVES,
        *HTTP2_SETTINGS,
        "Processes",
        *(each for each in own if own[each]["kind"] == "derived"),
    }

    for setting in own.keys() & event.keys() - of_an_mpm:
        differing = {key for key in event[setting] if own[setting][key] != event[setting][key]}
        assert differing <= {"server", *DIFFERENT.get(setting, ())}, setting
    assert event.keys() - own.keys() <= of_an_mpm | {"LeastProcesses", "LeastAsyncFactor", "MostProcesses",
        "LeastMinSpareThreads", "LeastMaxSpareThreads"}  # fmt: skip


@pytest.mark.parametrize("name", [*APACHES, "nginx", "sysctl-net"])
def test_the_default_is_the_same_on_every_machine(name):
    usual = written(load(name)).items()
    for cores, connections in ((1, 1), (1, 10_000), (64, 1), (64, 10_000)):
        default = written(load(name, cores=cores, connections=connections))

        # One CPU cannot be listened on in buckets; elsewhere that is off.
        assert default.pop("ListenCoresBucketsRatio", 0) == 0
        assert default.items() <= usual, (cores, connections)


def test_a_server_counts_the_cpus_that_are_online_and_is_tuned_for_those_that_it_may_use():
    nginx, h2o = (load(name, cores=2, online_cores=16) for name in ("nginx", "h2o"))
    highest = {each.name: each.high for space in (nginx, h2o) for each in space.dimensions}

    assert (highest["worker_processes"], highest["num-threads"]) == (4, 16)
    assert h2o.default()["num-threads"] == 16
    assert nginx.complete({"worker_processes": "auto"})["workers"] == 16


def test_a_server_that_may_hold_less_can_be_as_small_as_one_thread():
    config = load("apache-event", {"allow": ["capacity"]}, cores=1).complete(
        {"ThreadsPerChild": 1, "Processes": 1, "StartServers": 1, "MinSpareThreads": 1, "MaxSpareThreads": 3}
    )

    assert config["MaxRequestWorkers"] == 1


def test_ten_thousand_connections_can_have_as_many_workers():
    space = load("apache-event", connections=10_000)
    point = {dimension.name: 1.0 for dimension in space.dimensions if dimension.is_position}
    threads = {"ThreadsPerChild": 512}

    assert space.decode({**point, **threads})["MaxRequestWorkers"] >= 10_000


def test_the_recipe_of_2012_is_two_workers_in_one_process():
    space = load("apache-event").open()
    preset = next(preset for preset in space.presets if preset.name == "hand-tuned-2012")

    config = space.complete(preset.values)

    assert preset.adjusted == {}
    assert (config["MaxRequestWorkers"], config["ThreadsPerChild"], config["StartServers"]) == (2, 2, 1)
    assert "Apache silently changed" in preset.title


@pytest.mark.parametrize("name", [*APACHES, "nginx", "sysctl-net"])
@pytest.mark.parametrize("cores", [1, 64])
def test_presets_fit_as_they_are_written_but_for_what_a_sandbox_lacks(name, cores):
    space = load(name, cores=cores)
    for preset in space.presets:
        moved = {
            parameter: reason
            for parameter, reason in preset.adjusted.items()
            if parameter not in space.dead
            if "sandbox" not in reason and "loopback" not in reason and "risky" not in reason
        }
        assert moved == {}, preset.name


def test_haproxy_has_nothing_to_choose_where_it_may_hold_no_less_than_by_itself():
    held, free = load("haproxy"), load("haproxy", {"allow": ["capacity"]})

    limits = {"maxconn", "frontend.maxconn", "server.maxconn"}
    assert not limits & held.default().keys()
    assert limits <= free.default().keys()
    assert held.capacity(held.default()) == free.capacity(free.default())


def test_backlogs_end_at_what_the_kernel_would_cut_them_to():
    for name, backlog in (("nginx", "listen_backlog"), ("apache-event", "ListenBacklog")):
        with pytest.raises(UsageError, match="4096"):
            load(name).complete({backlog: 4097})


def test_a_kernel_that_cuts_the_packaged_backlog_is_not_asked_for_it():
    names = {"cores": 1, "memory_mib": 512, "connections": 10, "open_files_max": 4096, "somaxconn": 128}
    space = load_space(["nginx"], facts=SpaceFacts(names=names), base=Path())

    assert space.default()["listen_backlog"] == 128


@pytest.mark.parametrize(
    ("name", "backlog"), [("nginx", "listen_backlog"), ("apache-event", "ListenBacklog")]
)
def test_a_study_of_both_can_let_the_backlog_grow_with_somaxconn(name, backlog):
    grown = {"parameters": {backlog: {"high": "net_core_somaxconn"}}}
    space = load(name, "sysctl-net", grown)

    config = space.complete({"net.core.somaxconn": 60_000, backlog: 50_000})

    assert config[backlog] == 50_000
    with pytest.raises(UsageError, match="8192"):
        space.complete({"net.core.somaxconn": 8192, backlog: 50_000})


def test_somaxconn_is_never_lowered():
    with pytest.raises(UsageError, match="4096"):
        load("sysctl-net").complete({"net.core.somaxconn": 4095})


def test_access_logs_can_be_held_off_and_are_on_otherwise():
    assert load("nginx").default()["access_log"] == "on"
    held = load("nginx", {"set": {"access_log": "off"}}).default()
    assert held["access_log"] == "off"
    assert "access_log_buffer" not in held


def test_what_changes_answers_or_protection_is_tuned_only_when_it_is_allowed():
    tuned = {dimension.parameter for name in ("apache-event", "nginx") for dimension in load(name).dimensions}

    assert not tuned & {
        "KeepAlive", "KeepAliveTimeout", "Timeout", "BufferedLogs", "ExtendedStatus", "CustomLog",
        "RequestReadTimeout", "access_log", "keepalive_timeout", "send_timeout", "client_header_timeout",
        "lingering_close", "etag", "server_tokens", "open_file_cache_errors",
    }  # fmt: skip


def test_older_servers_have_the_defaults_of_their_time():
    older = load("nginx", versions={"nginx": (1, 18, 0)}).default()

    assert (older["keepalive_requests"], older["sendfile_max_chunk"]) == (100, 0)


def test_keys_without_effect_here_are_left_out_with_a_word():
    space = load("sysctl-net", exists=lambda path: "tso_rtt_log" not in path)

    assert "loopback" in space.left_out["net.ipv4.tcp_congestion_control"]
    assert "sandbox" in space.left_out["net.core.netdev_max_backlog"]
    assert "this host has no" in space.left_out["net.ipv4.tcp_tso_rtt_log"]


def test_settings_of_old_guides_are_named_dead():
    with pytest.raises(UsageError, match=r"4\.12"):
        load("sysctl-net", {"set": {"net.ipv4.tcp_tw_recycle": 1}})
    assert "net.ipv4.tcp_max_syn_backlog" in describe_dead("sysctl-net")


def test_what_is_in_force_is_the_default_of_the_kernel_settings():
    space = load("sysctl-net", current={**LINUX, "net.ipv4.tcp_wmem[1]": 87380})

    assert space.default()["net.ipv4.tcp_wmem[1]"] == 87380
    assert space.changes(space.default()) == {}
