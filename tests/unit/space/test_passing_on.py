"""Settings of passing requests on: a study with a backend has them, and they hold to its limits."""

import math
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.more import examples
from tests.unit.space.samples import HOST, load, with_parameter
from tuner.errors import UsageError
from tuner.space import Space, SpaceFacts, facts_from_json, facts_to_json, load_space

INT = "kind: int, low: 1, high: 9, default: 3"
WEB = {"nginx": "nginx", "apache": "apache-event", "apache-worker": "apache-worker",
       "apache-prefork": "apache-prefork", "apache-mpm": "apache-mpm"}  # fmt: skip
"""Server → space."""
OF_PASSING = ("upstream_", "proxy_", "fastcgi_", "Proxy")


@cache
def behind(server: str, protocol: str, *more: str, allow: str = "safe", **changes: int) -> Space:
    """Load the space of a web server before a backend, once: that takes longer than what is asked of it."""
    host = SpaceFacts(names={**HOST, "memory_mib": 4096, **changes}, backends={server: protocol})
    return load_space([WEB[server], *more, {"allow": [allow]}], facts=host, base=Path("/"))


def searched(space: Space) -> set[str]:
    return {each.parameter for each in space.dimensions}


def of_passing(space: Space) -> set[str]:
    return {name for name in searched(space) if name.startswith(OF_PASSING)}


def points(space: Space) -> st.SearchStrategy[dict[str, object]]:
    """Draw any point of a space."""
    axes = {
        each.name: st.sampled_from(each.choices)
        if each.choices
        else st.integers(math.ceil(each.low), math.floor(each.high))
        if each.kind == "int"
        else st.floats(each.low, each.high)
        for each in space.dimensions
    }
    return st.fixed_dictionaries(axes)


class TestLanguage:
    @pytest.mark.parametrize(
        ("condition", "protocol", "is_there"),
        [
            ("passes_to('http')", "http", True),
            ("passes_to('http')", "fastcgi", False),
            ("passes_to('http', 'fastcgi')", "fastcgi", True),
            ("passes_to()", "websocket", True),
            ("passes_to()", "", False),
            ("not passes_to()", "", True),
        ],
    )
    def test_what_a_server_passes_requests_to_decides(self, tmp_path, condition, protocol, is_there):
        backends = {"demo": protocol} if protocol else {"another": "http"}
        space = load(with_parameter(f'{INT}, when: "{condition}"'), tmp_path, backends=backends)

        assert ("x" in space.default()) is is_there
        assert ("x" in {each.parameter for each in space.dimensions}) is is_there

    def test_a_condition_is_decided_by_what_comes_first(self, tmp_path):
        condition = "passes_to('http') and n > 3"
        text = with_parameter(f'{INT}, when: "{condition}"')

        assert "x" in load(text, tmp_path).left_out
        assert "x" not in load(text, tmp_path, backends={"demo": "http"}).left_out

    def test_what_cannot_act_for_its_backend_says_so(self, tmp_path):
        body = f"{INT}, acts_when: not passes_to('http') and n > 2, acts_source: the code"

        inert = load(with_parameter(body), tmp_path, backends={"demo": "http"}).inert

        assert inert["x"] == "it acts only if the server passes nothing on by HTTP"

    def test_a_protocol_that_there_is_not_is_refused(self, tmp_path):
        with pytest.raises(UsageError, match=r"passes_to needs protocols, not 'ajp'; known are: 'http'"):
            load(with_parameter(f"{INT}, when: \"passes_to('ajp')\""), tmp_path)

    def test_a_setting_of_another_server_has_its_value_there_or_the_one_that_is_given(self, tmp_path):
        text = with_parameter(
            "kind: int, low: 1, high: other_size, default: 3", "elsewhere: {other.size: 7}\n"
        )
        other = {
            "server": "other",
            "parameters": {"other.size": {"kind": "int", "low": 20, "high": 90, "default": 50}},
        }

        assert load(text, tmp_path).complete({"x": 7})["x"] == 7
        with pytest.raises(UsageError, match="x: 8"):
            load(text, tmp_path).complete({"x": 8})
        assert load(text, tmp_path, other).complete({"x": 50})["x"] == 50
        assert load(text, tmp_path, other).complete({"x": 60, "other.size": 60})["x"] == 60

    def test_a_part_that_there_is_not_is_refused(self, tmp_path):
        with pytest.raises(UsageError, match=r"parts.0: there is no shared part 'apache-prox'.*apache-proxy"):
            load(with_parameter(INT, "parts: [apache-prox]\n"), tmp_path)

    def test_facts_keep_the_backends_and_those_of_before_have_none(self):
        facts = SpaceFacts(names=HOST, backends={"nginx": "http"})
        kept = facts_to_json(facts, {})
        before = {name: value for name, value in kept.items() if name != "backends"}

        assert facts_from_json(kept).backends == {"nginx": "http"}
        assert facts_from_json(before).backends == {}


@pytest.mark.parametrize("server", WEB)
class TestWebServers:
    def test_alone_it_has_nothing_of_them(self, server):
        space = load_space([WEB[server]], facts=SpaceFacts(names=HOST), base=Path("/"))

        assert of_passing(space) == set()
        assert not [name for name in space.default() if name.startswith(OF_PASSING)]

    @pytest.mark.parametrize("protocol", ["http", "fastcgi", "websocket"])
    def test_the_default_is_what_the_programs_do_by_themselves(self, server, protocol):
        space = behind(server, protocol, allow="semantic")
        default = space.for_server(space.default(), server)

        assert of_passing(space)
        assert space.violations(space.default()) == ()
        assert space.decode(space.encode(space.default())) == space.default()
        assert default.get("upstream_keepalive", 0) == 0
        assert default.get("ProxyPass.enablereuse", False) is (server != "nginx" and protocol == "http")

    @pytest.mark.parametrize("protocol", ["http", "websocket"])
    def test_what_serves_files_is_not_searched_where_everything_is_passed_on(self, server, protocol):
        of_files = {
            "open_file_cache",
            "output_buffers_size",
            "EnableSendfile",
            "EnableMMAP",
            "ReadBufferSize",
        }

        assert not searched(behind(server, protocol)) & of_files

    def test_an_upgraded_connection_takes_no_other_request(self, server):
        of_requests = {"keepalive_requests", "keepalive_timeout", "MaxKeepAliveRequests", "KeepAliveTimeout"}

        assert searched(behind(server, "http")) & of_requests
        assert not searched(behind(server, "websocket")) & of_requests

    @given(st.data())
    @settings(max_examples=examples(20), deadline=None)
    def test_kept_connections_leave_php_fpm_processes_for_the_others(self, server, data):
        space = behind(server, "fastcgi", "php-fpm")

        config = space.decode(data.draw(points(space)))

        children = config["pm.max_children"]
        if server == "nginx":
            kept = config.get("upstream_keepalive", 0) * config["workers"]
            assert kept < children
            assert config["fastcgi_keep_conn"] is (kept > 0)
        elif config.get("ProxyPass.enablereuse"):
            processes = config["MaxRequestWorkers"] // config["Threads"]
            assert processes * config.get("ProxyPass.max", 1) <= children

    @given(st.data())
    @settings(max_examples=examples(20), deadline=None)
    def test_no_candidate_holds_fewer_connections_whatever_it_keeps_open(self, server, data):
        space = behind(server, "http", connections=2000)

        config = space.decode(data.draw(points(space)))

        assert [each for each in space.lacks(config) if " holds " in each] == []


@given(st.data())
@settings(max_examples=examples(50), deadline=None)
@pytest.mark.parametrize("module", ["proxy", "fastcgi"])
def test_buffers_keep_to_the_rules_of_nginx(module, data):
    space = behind("nginx", "http" if module == "proxy" else "fastcgi", allow="semantic")
    config = space.decode(data.draw(points(space)))

    names = ("buffer_size", "buffers_number", "buffers_size", "busy_buffers_size")
    first, number, size, busy = (config[f"{module}_{name}"] for name in names)
    # src/http/modules/ngx_http_proxy_module.c, ngx_http_proxy_merge_loc_conf
    assert number >= 2
    assert max(first, size) <= busy <= (number - 1) * size


def test_php_fpm_and_the_web_server_before_it_share_the_memory_of_the_machine():
    space = behind("nginx", "fastcgi", "php-fpm", memory_mib=2048)
    most = space.decode({each.name: (each.choices or (each.high,))[-1] for each in space.dimensions})

    assert [each for each in space.lacks(most) if "GiB of memory, and the limit is" in each]


def test_processes_that_wait_for_their_backlog_are_never_fewer_than_packaged():
    space = behind("nginx", "fastcgi", "php-fpm", connections=2000)
    queue = space.capacity(space.default())["php-fpm"]["queue"]

    config = space.decode({each.name: (each.choices or (each.low,))[0] for each in space.dimensions})

    assert space.capacity(config)["php-fpm"]["queue"] >= queue
