"""No candidate holds less at once than the default, or what is active, unless the study allows it."""

from pathlib import Path
from random import Random

import pytest

from tests.unit.space.samples import facts, load
from tests.unit.space.test_built_in_spaces import in_force
from tuner.errors import UsageError
from tuner.space import Space, available_spaces, load_space
from tuner.space.rules import guard_by, name_shortfalls

ALLOW = {"allow": ["capacity"]}
EVERYTHING = {"allow": ["semantic", "risky"]}
HOSTS = {
    "small": {"cores": 1, "memory_mib": 2048},
    "usual": {"cores": 4, "memory_mib": 8192},
    "large": {"cores": 64, "memory_mib": 262144, "connections": 2000},
}
MOST_REFUSED = {("apache-prefork", "small"): 14, ("apache-mpm", "small"): 24, ("apache-mpm", "usual"): 10}
"""Of 40 points. A process for each connection, and every other point lets each keep memory without a limit
(MaxMemFree): that is more than a small host has."""
OUTAGES = [
    {"ThreadsPerChild": 25, "Processes": 1},
    {"ThreadsPerChild": 2, "Processes": 1, "StartServers": 1, "MinSpareThreads": 4, "MaxSpareThreads": 7},
    {"ThreadsPerChild": 64, "Processes": 2},
    {"ThreadsPerChild": 128, "Processes": 1},
    {"ThreadsPerChild": 149, "Processes": 1, "AsyncRequestWorkerFactor": 4},
    {"ListenBacklog": 128},
    # As many workers as the default's, but half of them behind each of two sockets.
    {"ListenCoresBucketsRatio": 1, "Processes": 6},
]
POOL = """\
space: pool
server: demo
parameters:
  processes: {kind: int, low: 1, high: 64, default: 8, also: A crash takes more with it.}
  threads: {kind: int, low: "max(1, ceil(least('workers') / processes))", high: 512, default: 16}
  kept: {kind: int, low: 0, high: 64, default: 0, unit: MiB}
  tls: {kind: bool, default: off}
  sessions: {kind: int, low: 1, high: 9, default: 1, when: tls}
derived:
  workers: {value: processes * threads}
capacity:
  workers: {value: workers}
  memory_mib: {value: workers * (1 + kept)}
  tickets: {value: sessions}
"""


def built_in(*sources: object, **changes: object) -> Space:
    current = {
        key: value for name in sources if isinstance(name, str) for key, value in in_force(name).items()
    }
    return load_space([*sources], facts=facts(current=current, **changes), base=Path("/"))


def draw(space: Space, chance: Random) -> dict[str, object]:
    point: dict[str, object] = {}
    for dimension in space.dimensions:
        if dimension.kind == "categorical":
            point[dimension.name] = chance.choice(dimension.choices)
        else:
            value = chance.uniform(dimension.low, dimension.high)
            point[dimension.name] = round(value) if dimension.kind == "int" else value
    return point


UNBOUNDED = {"caddy", "sysctl-fs", "sysctl-vm", "sysfs"}
"""Caddy bounds neither connections nor requests; the others have nothing in a sandbox."""


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", available_spaces())
class TestEveryBuiltInSpace:
    def test_it_states_its_capacity(self, name, host):
        space = built_in(name, **HOSTS[host])

        if name in UNBOUNDED:
            assert not space.capacity(space.default())
            return
        (held,) = space.capacity(space.default()).values()
        assert all(value > 0 for value in held.values())
        assert space.describe_capacity(space.default())

    def test_no_point_holds_less_than_the_default_and_most_keep_within_the_memory(self, name, host):
        """By construction: the search wastes no suggestion on what it may not try."""
        space = built_in(name, EVERYTHING, **HOSTS[host])
        chance = Random(name + host)  # noqa: S311 - a fixed selection
        default = space.capacity(space.default())
        refused = []
        for _ in range(40):
            config = space.decode(draw(space, chance))
            refused.append(space.violations(config))
            found = space.capacity(config)
            for server, figures in default.items():
                for figure in figures.keys() - {"memory_mib"}:
                    assert found[server][figure] >= figures[figure], figure

        assert sum(map(bool, refused)) <= MOST_REFUSED.get((name, host), 8)
        assert all("it may take" in sentence for sentences in refused for sentence in sentences)

    def test_the_default_is_the_same_with_and_without_the_guard(self, name, host):
        space = built_in(name, **HOSTS[host])
        free = built_in(name, ALLOW, **HOSTS[host])
        internal = {item.name for item in space.derived if item.internal}

        guarded, other = space.default(), free.default()

        # What the guard leaves nothing to choose of is not set at all.
        assert guarded.keys() <= other.keys()
        assert {key: other[key] for key in guarded if key not in internal} == {
            key: value for key, value in guarded.items() if key not in internal
        }
        assert space.lacks(space.default()) == ()


class TestApache:
    @pytest.mark.parametrize("outage", OUTAGES)
    def test_a_configuration_with_less_is_refused_and_cannot_be_decoded(self, outage):
        space = built_in("apache-event")
        config = space.open().complete(outage)

        assert space.lacks(config)
        assert space.violations(config)
        with pytest.raises(UsageError, match=r"below its minimum|has capacity for"):
            space.complete(outage)
        assert space.lacks(space.complete(outage, fit=True)) == ()

    def test_the_study_may_allow_less(self):
        space = built_in("apache-event", ALLOW)

        config = space.complete(OUTAGES[0])
        assert space.violations(config) == ()
        assert space.lacks(config) == (
            "apache has capacity for 75 connections, the default for 450",
            "apache has capacity for 25 requests at once, the default for 150",
        )
        assert space.allows_less

    def test_a_preset_with_less_is_not_tried_but_kept_for_comparisons(self):
        space = built_in("apache-event")

        assert "hand-tuned-2012" not in {preset.name for preset in space.presets}
        assert (
            "has capacity for 6 connections, the default for 450" in space.left_out["preset hand-tuned-2012"]
        )
        (kept,) = (preset for preset in space.open().presets if preset.name == "hand-tuned-2012")
        config = space.open().complete(kept.values)
        assert (config["Processes"], config["MaxRequestWorkers"]) == (1, 2)

    def test_a_preset_that_asks_for_what_is_needed_adapts(self):
        values = {"ThreadsPerChild": 64, "Processes": "max(1, ceil(least('requests') / 64))"}
        few = {"presets": {"few-processes": {"values": values}}}
        presets = {preset.name: preset for preset in built_in("apache-event", few).presets}
        free = {preset.name: preset for preset in built_in("apache-event", few, ALLOW).presets}

        assert presets["few-processes"].values["Processes"] == 3
        assert free["few-processes"].values["Processes"] == 1

    def test_what_is_in_force_is_what_must_be_held(self):
        packaged = built_in("apache-event").default()
        current = {**packaged, "ThreadsPerChild": 64, "Processes": 10, "MaxSpareThreads": 200}
        host = facts(current=current, sandbox=False, installed=True)
        space = load_space(["apache-event"], facts=host, base=Path("/"))

        assert space.default()["MaxRequestWorkers"] == 640
        chance = Random(1)  # noqa: S311 - a fixed selection
        for _ in range(40):
            assert space.decode(draw(space, chance))["MaxRequestWorkers"] >= 640

    def test_directives_that_follow_stand_under_their_own_names(self):
        space = built_in("apache-event")

        shipped = space.shipped(space.complete({"ThreadsPerChild": 100, "Processes": 2}))

        assert shipped["MaxRequestWorkers"] == (150, 200)
        assert shipped["ThreadLimit"] == (64, 100)
        assert not {"Processes", "ListenBuckets", "LeastProcesses"} & shipped.keys()


def test_fewer_nginx_workers_hold_more_connections_each():
    space = built_in("nginx")

    shipped = space.shipped(space.complete({"worker_processes": 1}))

    assert shipped["worker_connections"] == (768, 1536)
    assert shipped["worker_rlimit_nofile"] == (1024, 2560)


class TestTheLanguage:
    def test_a_bound_asks_for_the_least(self, tmp_path):
        space = load(POOL, tmp_path)

        assert space.complete({"processes": 2}, fit=True)["threads"] == 64
        with pytest.raises(
            UsageError, match=r"60 is below its minimum, 64 \(`max\(1, ceil\(least\('workers'\)"
        ):
            space.complete({"processes": 2, "threads": 60})
        assert load(POOL, tmp_path, ALLOW).complete({"processes": 2, "threads": 60})["workers"] == 120

    def test_a_figure_of_what_is_inactive_is_left_out(self, tmp_path):
        space = load(POOL, tmp_path)

        assert space.capacity(space.default()) == {"demo": {"workers": 128, "memory_mib": 128}}
        assert space.capacity(space.complete({"tls": True}))["demo"]["tickets"] == 1

    def test_memory_is_bounded_by_the_machine(self, tmp_path):
        space = load(POOL, tmp_path, memory_mib=1024)

        assert space.complete({"kept": 7})["kept"] == 7
        with pytest.raises(
            UsageError, match=r"it may take about 1\.1 GiB of memory, and the limit is about 1\.0 GiB"
        ):
            space.complete({"kept": 8})

    def test_where_the_default_takes_more_than_the_machine_has_it_is_the_bound(self, tmp_path):
        space = load(POOL, tmp_path, memory_mib=100)

        assert space.violations(space.default()) == ()
        assert space.violations(space.open().complete({"processes": 9})) != ()

    def test_an_unknown_figure_is_refused_with_those_there_are(self, tmp_path):
        with pytest.raises(UsageError, match=r"not 'worker'; known are: 'workers', 'memory_mib', 'tickets'"):
            load(POOL.replace("least('workers')", "least('worker')"), tmp_path)

    def test_a_text_is_no_capacity(self, tmp_path):
        with pytest.raises(UsageError, match="the capacity is 'many', not a number"):
            load(POOL.replace("{value: workers}", "{value: \"'many' if workers else 1\"}"), tmp_path)

    def test_servers_are_held_to_their_own_figures(self):
        both = built_in("apache-event", "php-fpm")
        default = both.capacity(both.default())

        found = {**default, "php-fpm": {**default["php-fpm"], "requests": 4}}
        guard = guard_by(default, {"memory_mib": 4096})
        assert name_shortfalls(both.rules.figures, found, guard) == (
            "php-fpm has capacity for 4 requests at once, the default for 5",
        )
