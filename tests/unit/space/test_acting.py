"""What cannot act under a load: which parameters stay at their default, and why."""

from functools import cache
from pathlib import Path

import pytest

from tests.unit.space.samples import HOST, load, with_parameter
from tests.unit.space.test_built_in_spaces import in_force
from tuner.errors import UsageError
from tuner.space import Space, SpaceFacts, available_spaces, describe_searched, facts_from_json, load_space

INT = "kind: int, low: 1, high: 9, default: 3, acts_source: the code"
CLOSED = {"keepalive": False, "protocol": "http/1.1"}


def one(condition: str, folder: Path, *refinements, rest: str = "", **changes: object) -> Space:
    return load(with_parameter(f"{INT}, acts_when: {condition}", rest), folder, *refinements, **changes)


def searched(space: Space) -> set[str]:
    return {each.parameter for each in space.dimensions}


@cache
def of_load(space: str, *, connections: int = 100, installed: bool = False, **facts: object) -> Space:
    """Load a built-in space, once, as `tuner` does for its own load generators."""
    known = {
        "keepalive": True, "pipelining": False, "page_bytes": 615, "pages": 1, "protocol": "http/1.1",
        "tls": False, "fastopen": False, "loopback": True, "installed": installed, **facts,
    }  # fmt: skip
    host = SpaceFacts(names={**HOST, "connections": connections}, current=in_force(space), load=known)
    return load_space([space], facts=host, base=Path("/"))


class TestConditions:
    def test_what_cannot_act_keeps_its_default_and_is_no_dimension(self, tmp_path):
        space = one("keepalive", tmp_path, load=CLOSED)

        assert space.inert == {"x": "it acts only with keep-alive"}
        assert searched(space) == {"n", "flag"}
        assert space.default()["x"] == 3

    @pytest.mark.parametrize("facts", [{"keepalive": True}, {}])
    def test_what_acts_or_is_not_known_is_searched(self, tmp_path, facts):
        space = one("keepalive", tmp_path, load=facts)

        assert (space.inert, "x" in searched(space)) == ({}, True)

    def test_one_fact_that_decides_is_enough(self, tmp_path):
        assert one("keepalive and page_bytes > 100", tmp_path, load=CLOSED).inert
        assert not one("page_bytes > 100 and keepalive", tmp_path, load=CLOSED).inert

    def test_facts_of_the_host_and_arithmetic_can_be_used(self, tmp_path):
        condition = "2 * connections > somaxconn"

        assert one(condition, tmp_path).inert
        assert not one(condition, tmp_path, connections=4000).inert

    def test_a_parameter_of_the_same_name_is_not_meant(self, tmp_path):
        rest = "  keepalive: {kind: bool, default: on}\n"

        assert one("keepalive", tmp_path, rest=rest, load=CLOSED).inert
        assert not one("keepalive", tmp_path, rest=rest, load={}).inert

    def test_facts_of_the_load_are_known_nowhere_else(self, tmp_path):
        with pytest.raises(UsageError, match="uses keepalive, which is not known"):
            load(with_parameter("kind: int, low: 1, high: 9, default: 3, when: keepalive"), tmp_path)

    def test_a_fact_that_there_is_not_is_refused(self, tmp_path):
        with pytest.raises(
            UsageError, match=r"uses page_byte, which is not known\..* Did you mean page_bytes"
        ):
            one("page_byte > 3", tmp_path)

    def test_nobody_says_so_without_a_source(self, tmp_path):
        text = with_parameter("kind: int, low: 1, high: 9, default: 3, acts_when: keepalive")

        with pytest.raises(UsageError, match=r"demo\.yaml:4.*Add `acts_source:`"):
            load(text, tmp_path)


class TestOtherParameters:
    def test_beside_one_that_is_searched_it_has_its_dimension_and_its_default_where_it_cannot_act(
        self, tmp_path
    ):
        space = one("flag", tmp_path)

        assert space.decode({"x": 7, "flag": True})["x"] == 7
        assert space.decode({"x": 7, "flag": False})["x"] == 3

    def test_one_that_is_held_decides_for_good(self, tmp_path):
        assert one("flag", tmp_path, {"without": ["flag"]}).inert == {"x": "it acts only if flag is on"}
        assert not one("flag", tmp_path, {"set": {"flag": True}}).inert

    def test_one_that_is_unknown_here_takes_nothing_along(self, tmp_path):
        rest = "  gone: {kind: int, low: 1, high: 9, default: current}\n"
        space = one("gone > 3", tmp_path, rest=rest)

        assert "gone" in space.left_out
        assert space.decode({"x": 7})["x"] == 7

    def test_circles_are_refused(self, tmp_path):
        with pytest.raises(UsageError, match="is circular"):
            one("x > 3", tmp_path)

    def test_expressions_see_the_default_of_what_cannot_act(self, tmp_path):
        space = one("keepalive", tmp_path, rest="derived: {d: {value: x + n}}\n", load=CLOSED)

        assert space.decode({"n": 4})["d"] == 7

    def test_a_preset_leaves_out_what_cannot_act(self, tmp_path):
        rest = "presets: {p: {values: {x: 7, n: 2}}, q: {values: {x: 7, flag: on}}}\n"
        of_load, of_flag = (
            one(condition, tmp_path, rest=rest, load=CLOSED) for condition in ("keepalive", "flag")
        )

        assert [dict(each.values) for each in of_load.presets] == [{"n": 2}, {"flag": True}]
        assert "no effect under this load" in of_load.presets[0].adjusted["x"]
        assert [dict(each.values) for each in of_flag.presets] == [{"n": 2}, {"x": 7, "flag": True}]


class TestStudies:
    @pytest.mark.parametrize("naming", [{"only": ["x", "n"]}, {"parameters": {"x": {"high": 5}}}])
    def test_what_a_study_names_is_searched_all_the_same(self, tmp_path, naming):
        space = one("keepalive", tmp_path, naming, load=CLOSED)

        assert "x" in searched(space)
        assert space.inert == {}
        assert space.inert_but_tuned == {"x": "it acts only with keep-alive"}

    def test_another_reason_not_to_search_it_stands(self, tmp_path):
        space = one("keepalive, risk: risky", tmp_path, load=CLOSED)

        assert space.inert == {}
        assert "risky" in describe_searched(space)["held"]["x"]

    def test_one_that_was_searched_before_is_read_as_it_was(self):
        """Facts that an earlier tuner kept say nothing of the load."""
        kept = {
            "names": HOST, "versions": {}, "current": {}, "sandbox": True, "loopback": True,
            "installed": False, "exists": {},
        }  # fmt: skip
        for name in available_spaces():
            kept["current"] = in_force(name)
            space = load_space([name], facts=facts_from_json(kept), base=Path("/"))
            assert space.inert == {}

    def test_a_value_that_an_earlier_search_chose_is_still_shown_and_counts(self, tmp_path):
        space = one("keepalive", tmp_path, load=CLOSED)
        config = {"x": 7, "n": 3, "flag": False}

        assert space.violations(config) == ()
        assert space.changes(config) == {"x": (3, 7)}
        assert space.complete({"x": 7}) == config


LOADS = (
    (False, 0, 10_000), (False, 615, 100), (False, 20_480, 1), (False, 1_000_000, 100),
    (True, 0, 1), (True, 615, 10_000), (True, 20_480, 100), (True, 1_000_000, 10_000), (True, 615, 100),
)  # fmt: skip
"""Whether connections are kept, bytes of the page, connections: each value with nearly each other one."""


@pytest.mark.parametrize("name", available_spaces())
def test_every_condition_of_the_built_in_spaces_can_be_decided_and_every_hint_followed(name):
    for keepalive, page_bytes, connections in LOADS:
        space = of_load(name, keepalive=keepalive, page_bytes=page_bytes, connections=connections)

        assert space.dimensions or space.left_out  # what is the whole machine's is left to installed ones
        assert not searched(space) & space.inert.keys()
        assert space.violations(space.default()) == ()
        assert space.decode(space.encode(space.default())) == space.default()
        # What hangs on other parameters is decided for every point, the facts of the load being known.
        assert all(
            each.acts_when is None or each.pinned
            or not {*each.acts_when.names} & {"page_bytes", "keepalive"}
            or each.acts_when.decides(space.rules.scope(space.default())) is not None
            for each in space.parameters
        )  # fmt: skip
        for dimension in space.dimensions:
            if dimension.hint is not None and dimension.hint.value is not None:
                assert space.decode({dimension.name: dimension.hint.value})


class TestBuiltInSpaces:
    def test_without_kept_connections_nothing_of_them_is_searched(self):
        closed = {"keepalive": False}

        assert of_load("apache-event", **closed).inert.keys() >= {
            "MaxKeepAliveRequests", "FlushMaxPipelined", "FlushMaxThreshold", "ReadBufferSize",
            "ListenBacklog",
        }  # fmt: skip
        assert of_load("nginx", **closed).inert.keys() >= {"keepalive_requests", "tcp_nodelay"}
        assert "net.ipv4.tcp_slow_start_after_idle" in of_load("sysctl-net", **closed).inert

    def test_pools_of_closed_connections_are_searched_where_there_are_more_than_are_kept(self):
        space = of_load("apache-event", keepalive=False, connections=100)
        pools = next(each for each in space.parameters if each.name == "MaxMemFree")

        assert pools.acts(space.rules.scope(space.complete({"ThreadsPerChild": 133})))
        assert not pools.acts(space.rules.scope(space.complete({"ThreadsPerChild": 134})))
        assert "MaxMemFree" in of_load("apache-event", keepalive=True, connections=100).inert

    def test_with_kept_connections_they_are(self):
        assert "MaxKeepAliveRequests" in searched(of_load("apache-event"))
        assert {"keepalive_requests", "tcp_nodelay"} <= searched(of_load("nginx"))

    def test_large_pages_bring_back_what_sends_them(self):
        assert {"FlushMaxThreshold", "MaxMemFree"} <= searched(of_load("apache-event", page_bytes=1_000_000))
        assert {"sendfile_max_chunk", "output_buffers_size"} <= searched(
            of_load("nginx", page_bytes=1_000_000)
        )

    def test_a_page_too_small_for_sendfile_does_not_have_it_searched(self):
        assert "EnableSendfile" in of_load("apache-event", page_bytes=255).inert
        assert "EnableSendfile" in searched(of_load("apache-event", page_bytes=256))

    def test_files_that_sendfile_sends_are_not_mapped(self):
        space = of_load("apache-event", page_bytes=20_480)

        assert space.decode({"EnableSendfile": True, "EnableMMAP": False})["EnableMMAP"] is True
        assert space.decode({"EnableSendfile": False, "EnableMMAP": False})["EnableMMAP"] is False

    def test_a_backlog_is_searched_when_clients_could_fill_it(self):
        assert "listen_backlog" in of_load("nginx", connections=200).inert
        assert "listen_backlog" in searched(of_load("nginx", connections=300))

    def test_settings_of_http2_are_searched_for_http2(self):
        h2, h1 = of_load("h2o", protocol="h2", tls=True, loopback=False), of_load("h2o")

        assert "http2-latency-optimization-max-cwnd" in searched(h2)
        assert "http2-max-concurrent-requests-per-connection" in h1.inert

    def test_what_follows_is_said_to_be_written_where_it_can_act(self):
        h1, h2 = of_load("apache-event"), of_load("apache-event", protocol="h2", tls=True)
        written = [space.shipped(space.complete({"ThreadsPerChild": 64}, fit=True)) for space in (h1, h2)]

        assert all("MaxRequestWorkers" in each for each in written)
        assert ["H2MinWorkers" in each for each in written] == [False, True]

    def test_of_an_installed_server_less_is_taken_for_granted(self):
        private, installed = of_load("nginx"), of_load("nginx", installed=True)

        assert installed.inert.keys() < private.inert.keys()
