import pytest

from tuner.errors import UsageError
from tuner.space import available_spaces, describe_dead, describe_presets, describe_space, describe_spaces
from tuner.space.values import format_number

KEYS = {
    "name",
    "server",
    "kind",
    "range",
    "default",
    "risk",
    "apply",
    "unit",
    "when",
    "why",
    "source",
    "special",
}


@pytest.mark.parametrize("name", available_spaces())
def test_every_setting_of_every_built_in_space_says_what_it_is_and_why(name):
    for entry in describe_space(name):
        assert entry.keys() >= KEYS
        assert all(
            entry[key] != ""
            for key in ("name", "server", "kind", "default", "risk", "apply", "why", "source")
        )


def test_the_spaces_themselves_are_listed_in_the_same_way():
    spaces = {entry["name"]: entry for entry in describe_spaces()}

    assert set(spaces) == set(available_spaces())
    assert spaces["nginx"] == {
        "name": "nginx", "kind": "space", "server": "nginx", "default": "", "source": "",
        "why": "nginx, static pages",
    }  # fmt: skip


@pytest.mark.parametrize("name", available_spaces())
def test_ranges_are_told_for_all_that_is_tuned(name):
    assert [
        each["name"] for each in describe_space(name) if not each["range"] and each["kind"] != "derived"
    ] == []


def test_what_a_space_says_is_there():
    entries = {entry["name"]: entry for entry in describe_space("nginx")}

    assert entries["worker_processes"]["kind"] == "int"
    assert entries["sendfile"]["range"] == "off, on"
    assert entries["worker_rlimit_nofile"]["kind"] == "derived"


def test_presets_say_where_they_are_from():
    for preset in describe_presets("nginx"):
        assert preset["title"]
        assert preset["source"]
        assert preset["values"]


def test_dead_settings_say_what_became_of_them():
    assert "4.12" in describe_dead("sysctl-net")["net.ipv4.tcp_tw_recycle"]


def test_an_unknown_space_names_the_nearest():
    with pytest.raises(
        UsageError, match=r"search space 'ngnix': no search space has this name\. Did you mean nginx"
    ):
        describe_space("ngnix")


@pytest.mark.parametrize(
    ("value", "said"),
    [(10**14, "100000000000000"), (1e14, "100000000000000"), (1048576.0, "1048576"), (0.25, "0.25")],
)
def test_a_whole_number_is_shown_with_all_its_digits(value, said):
    assert format_number(value) == said
