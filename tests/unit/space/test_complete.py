"""Values that somebody gives, completed to a configuration."""

import pytest

from tests.unit.space.samples import DEFAULT, WHOLE, load
from tuner.errors import UsageError
from tuner.space import Space


@pytest.fixture(scope="module")
def space(tmp_path_factory) -> Space:
    return load(WHOLE, tmp_path_factory.mktemp("whole"))


def test_what_is_not_given_is_at_its_default(space):
    config = space.complete({"threads": 64, "accept": "none"})

    followers = {"spare": 128, "workers": 128, "ratio": 32.0, "per_process": 32}
    assert config == DEFAULT | {"threads": 64, "accept": "none"} | followers


def test_a_default_that_no_longer_fits_is_pulled_into_its_bounds(space):
    assert space.complete({"processes": 1})["started"] == 1
    assert space.complete({"pair[0]": 50})["pair[1]"] == 50


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"requests": "unlimited"}, 0),
        ({"requests": 0}, 0),
        ({"requests": "500"}, 500),
        ({"requests": 500.0}, 500),
        ({"keepalive": "off"}, False),
        ({"keepalive": 0}, False),
        ({"accept": True}, "on"),
        ({"accept": False}, "off"),
        ({"share": 1}, 1.0),
        ({"timeout_s": "2.5"}, 2.5),
        ({"unsafe": True}, True),
    ],
)
def test_values_are_taken_in_the_forms_that_people_write(space, given, kept):
    (name,) = given
    value = space.complete(given)[name]

    assert value == kept
    assert type(value) is type(kept)


def test_a_whole_configuration_gives_itself(space):
    config = space.complete({"threads": 64, "requests": "unlimited"})

    assert space.complete(config) == config


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"thread": 3}, "thread: whole has no such parameter. Did you mean threads"),
        ({"old_setting": 3}, "old_setting: this parameter is obsolete: removed in version 2"),
        ({"threads": 1000}, "threads: 1000 is above its maximum, 512. Give 1 to 512"),
        ({"started": 3}, r"started: 3 is above its maximum, 2 \(`processes`\)"),
        ({"requests": 5}, "requests: 5 is below its minimum, 10. Give 10 to 100000, or unlimited"),
        ({"threads": 2.5}, "threads: 2.5 is not a whole number"),
        ({"threads": "lots"}, "threads: 'lots' is not a number. Give a number"),
        ({"requests": "lots"}, "Give a number or one of unlimited"),
        ({"threads": True}, "threads: True is not a number"),
        ({"chunk": 105}, "chunk: 105 is off its grid, which starts at 0 in steps of 10. Give 100"),
        ({"keepalive": "perhaps"}, "keepalive: 'perhaps' is neither on nor off"),
        ({"accept": "dota"}, "accept: 'dota' is none of its choices. Did you mean data"),
        (
            {"keepalive": False, "timeout_s": 3},
            "timeout_s: 3 has no effect, because `keepalive` is false",
        ),
        (
            {"workers": 7},
            "workers: 7 is given, but tuner derives this setting as `processes . threads` = 50. Set ",
        ),
        (
            {"processes": 8, "threads": 512},
            "`workers <= 40 . connections` does not hold with .*Memory ends before",
        ),
    ],
)
def test_what_makes_no_configuration_is_refused(space, given, wrong):
    with pytest.raises(UsageError, match=wrong):
        space.complete(given)


@pytest.mark.parametrize("given", [50, 50.0, "50"])
def test_what_follows_may_be_given_as_it_follows(space, given):
    assert space.complete({"workers": given}) == space.default()


def test_with_fit_any_part_of_a_configuration_gives_one(space):
    whole = space.complete({"processes": 8, "started": 8, "requests": "unlimited", "threads": 64})
    part = {name: value for name, value in whole.items() if name != "processes"}

    config = space.complete(part, fit=True)

    assert config["started"] == 2
    assert config["requests"] == 0
    assert space.violations(config) == ()


def test_with_fit_what_is_inactive_is_dropped(space):
    assert "timeout_s" not in space.complete({"keepalive": False, "timeout_s": 3}, fit=True)
