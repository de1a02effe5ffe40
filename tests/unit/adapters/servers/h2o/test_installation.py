"""The installed h2o: what its YAML says, and which words of it change."""

from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.h2o.layouts import BY_HAND, DEBIAN, INCLUDED, INCLUDING, MAIN, find
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.h2o.settings import SETTINGS
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Scalar
from tuner.space import describe_space


def change(text: str, **values: Scalar) -> str:
    config = {name.replace("_", "-"): value for name, value in values.items()}
    return H2o().rewrite(config, find(text)).get(MAIN, text.encode()).decode()


def test_every_setting_of_the_space_is_known_to_the_adapter():
    assert {entry["name"] for entry in describe_space("h2o")} == {*SETTINGS, "access-log"}


def test_what_debian_ships_is_the_programs_own_default():
    found = find(DEBIAN)

    assert (found.port, found.log) == (80, PurePosixPath("/var/log/h2o/error.log"))
    assert found.service.pid_file == PurePosixPath("/run/h2o.pid")
    assert found.service.check == ("h2o", "-t", "-c", "/etc/h2o/h2o.conf")
    assert found.facts.current.items() >= {
        "num-threads": 2, "max-connections": 1024, "http1-request-timeout": 10, "file.etag": True,
        "http2-latency-optimization-max-additional-delay": 0.1, "proxy.timeout.keepalive": 2000,
    }.items()  # fmt: skip


def test_what_the_top_of_the_file_says_is_in_force():
    found = find(BY_HAND)

    assert (found.port, found.sites) == (8080, ("http://a.example:81/",))
    assert found.facts.current.items() >= {
        "num-threads": 3, "max-connections": 512, "file.etag": False, "http1-request-timeout": 10,
    }.items()  # fmt: skip


def test_keys_that_are_given_again_and_included_files_are_read():
    found = find(INCLUDING)

    assert found.port == 8081
    assert {*map(str, found.files)} == {str(MAIN), *INCLUDED}
    assert found.facts.current["num-threads"] == 3
    # They stand in another file, where they are left alone.
    assert found.facts.current.keys().isdisjoint({"max-connections", "max-delegations", "tcp-fastopen"})
    assert change(INCLUDING, num_threads=4) == INCLUDING.replace("num-threads: 3", "num-threads: 4")


@pytest.mark.parametrize(
    "text", [DEBIAN, BY_HAND, BY_HAND.replace("\n", "\r\n"), "{max-connections: 9}", INCLUDING]
)
def test_the_present_configuration_changes_nothing(text):
    installation = find(text)

    assert H2o().rewrite(installation.facts.current, installation) == {}


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        (BY_HAND, {"max_connections": 77}, BY_HAND.replace("   0512 ", "   77 ")),
        (BY_HAND, {"num_threads": 4}, BY_HAND.replace("'3'", "4")),
        (DEBIAN, {"num_threads": 4, "tcp_fastopen": 0}, "num-threads: 4\ntcp-fastopen: 0\n" + DEBIAN),
        ("{max-connections: 9}", {"max_connections": 8}, "{max-connections: 8}"),
        ("{listen: 80}", {"max_connections": 8}, "{max-connections: 8, listen: 80}"),
        ("# é\r\nlisten: 80\r\n", {"max_connections": 8}, "# é\r\nmax-connections: 8\r\nlisten: 80\r\n"),
        ("---\n  listen: 80\n", {"max_connections": 8}, "---\n  max-connections: 8\n  listen: 80\n"),
        ("\ufefflisten: 80", {"max_connections": 8}, "\ufeffmax-connections: 8\nlisten: 80"),
    ],
)
def test_only_the_words_of_what_changes_are_rewritten(text, values, expected):
    assert change(text, **values) == expected


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("listen: 80\n", "all", "ssl-session-resumption: {mode: ticket}\nlisten: 80\n"),
        ("ssl-session-resumption: {mode: all}\n", "all", "ssl-session-resumption: {mode: ticket}\n"),
        (
            "ssl-session-resumption:\n  mode: OFF # none\nlisten: 80\n",
            "off",
            "ssl-session-resumption:\n  {mode: ticket} # none\nlisten: 80\n",
        ),
    ],
)
def test_how_sessions_are_taken_up_is_found_again_and_rewritten(text, found, expected):
    installation = find(text)
    assert installation.facts.current["ssl-session-resumption"] == found

    changed = H2o().rewrite({"ssl-session-resumption": "ticket"}, installation)

    assert [content.decode() for content in changed.values()] == [expected]
    assert find(expected).facts.current["ssl-session-resumption"] == "ticket"


@pytest.mark.parametrize(
    "text",
    [
        "ssl-session-resumption: {mode: cache, cache-store: memcached}\n",
        "ssl-session-resumption: {mode: sometimes}\n",
        "ssl-session-resumption: {cache-store: internal}\n",
        "a: &a all\nssl-session-resumption: {mode: *a}\n",
        "a: &a {mode: all}\nssl-session-resumption: *a\n",
    ],
)
def test_what_says_more_of_sessions_is_left_alone(text):
    installation = find(text)

    assert "ssl-session-resumption" not in installation.facts.current
    with pytest.raises(ConfigRejected, match="has a form in this file that tuner does not change"):
        H2o().rewrite({"ssl-session-resumption": "off"}, installation)


@pytest.mark.parametrize(
    "text",
    [
        "a: &n 9\nmax-connections: *n\n",
        "max-connections: 9\nmax-connections: 8\n",
        "max-connections: |\n  9\n",
        "max-connections: [9]\n",
        "max-connections: 0x10\n",
    ],
)
def test_what_is_no_word_in_its_own_place_is_left_alone(text):
    installation = find(text)

    assert "max-connections" not in installation.facts.current
    with pytest.raises(ConfigRejected, match="max-connections"):
        H2o().rewrite({"max-connections": 7}, installation)


BROKEN = ("", "- a\n", "{a: b", "a: b: c\n", "\tlisten: 80\n", b"\xff\xfe\xff", "a: \0")
NO_NUMBERS = (0, -1, 2**31, 1.0, True, "1", "1\nuser: root", "{}", "1 # a", "*a", "!file /etc/shadow")
NUMBERS = ("num-threads", "max-connections", "http1-request-timeout", "proxy.timeout.io")


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_configuration_is_refused_with_its_file(text):
    with pytest.raises(TargetError, match=str(MAIN)):
        find(text)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_never_reaches_a_file(name, value):
    with pytest.raises(ConfigRejected, match=name):
        H2o().rewrite({name: value}, find(DEBIAN))


@pytest.mark.parametrize("value", [0.0, 1.5, -0.1, float("nan"), 1, "0.1", "0.1\nuser: root", True])
def test_what_is_no_ratio_never_reaches_a_file(value):
    with pytest.raises(ConfigRejected, match="is no number above 0 and up to 1"):
        H2o().rewrite({"http2-latency-optimization-max-additional-delay": value}, find(DEBIAN))


@pytest.mark.parametrize("value", ["ON", "on", 1, "ON\nuser: root", None])
def test_what_is_no_switch_never_reaches_a_file(value):
    with pytest.raises(ConfigRejected, match="neither on nor off"):
        H2o().rewrite({"file.etag": value}, find(DEBIAN))


@pytest.mark.parametrize("name", ["user", "listen", "access-log", "file.dir", "a\nb", "", "crash-handler"])
def test_a_name_that_is_no_setting_never_reaches_a_file(name):
    with pytest.raises(ConfigRejected, match="Remove this setting from the search space"):
        H2o().rewrite({name: "x"}, find(DEBIAN))


OVERRIDING = """\
file.etag: ON
hosts:
  a.example:
    file.etag: OFF
    paths:
      /: {file.dir: /srv}
      /app: {proxy.timeout.io: 9000, proxy.reverse.url: "http://127.0.0.1:8080/"}
  b.example:
    paths:
      /: [{file.dir: /srv}, {file.etag: OFF}]
      /same: {file.etag: "on"}
      /c: {file.etag: OFF}
      /d: {file.etag: OFF}
"""


def test_what_hosts_and_paths_give_otherwise_is_told_with_its_places():
    asked = {"proxy.timeout.io": 5000, "file.etag": True, "num-threads": 2}

    assert H2o().find_overrides(asked, find(OVERRIDING)) == {
        "proxy.timeout.io": "a.example/app",
        "file.etag": "a.example, b.example/, b.example/c and 1 more",
    }
    assert H2o().find_overrides(asked, find(DEBIAN)) == {}
