"""The drawn servers: the same ones for ever, whatever becomes of the spaces."""

import json
from pathlib import Path
from random import Random

import pytest

from benchmarks.campaign.effects import value_at
from benchmarks.campaign.servers import draw_idle_server, draw_server
from benchmarks.campaign.spaces import FAMILIES, load_family, settings_of

ROOT = Path(__file__).parents[3]
SERVERS = range(20)
MEASURED = ROOT / "benchmarks/campaign/today.jsonl"


@pytest.fixture(scope="module")
def servers():
    return [draw_server(number) for number in SERVERS]


@pytest.fixture(scope="module")
def defaults():
    return {family: load_family(family).default() for family in FAMILIES}


def test_they_are_those_that_the_code_before_was_measured_on(servers):
    measured = [json.loads(line) for line in MEASURED.read_text().splitlines()]
    truths = {each["server"]: each["truth"] for each in measured if each["kind"] == "drawn"}

    assert [server.fingerprint for server in servers] == [truths[number] for number in SERVERS]


def test_the_default_is_worth_nothing_and_starts(servers, defaults):
    for server in servers:
        assert server.truth(defaults[server.family]) == 0.0
        assert server.fault(defaults[server.family]) is None


def test_most_of_them_have_something_to_find_and_none_has_too_much(servers):
    best = [server.best() for server in servers]

    assert sum(each > 0.1 for each in best) > 15
    assert max(best) <= 1.2


def test_a_setting_that_a_later_space_adds_or_leaves_out_does_nothing(servers, defaults):
    for server in servers:
        config = defaults[server.family]
        known = [each.name for each in settings_of(server.family.space)]
        for name in known:
            less = {other: value for other, value in config.items() if other != name}
            assert server.truth(less) == server.truth(config)
        assert server.truth({**config, "something_new": 1}) == server.truth(config)


def test_every_good_effect_is_worth_its_size_at_its_best_and_every_harmful_one_costs(servers):
    for effect in (effect for server in servers for effect in server.effects):
        worth = effect.worth
        if effect.harmful:
            assert max(worth.values()) == 0.0
            assert min(worth.values()) < 0.0
        else:
            assert max(worth.values()) == pytest.approx(effect.size, rel=0.05)
        assert worth[effect.setting.default] == 0.0


def test_right_hints_point_at_a_gain_and_wrong_ones_away_from_it(servers):
    for server in servers:
        effects = {effect.setting.name: effect for effect in server.effects}
        for hint in (hint for hint in server.hints if hint.kind != "useless" and not hint.direction):
            effect = effects[hint.name]
            assert not effect.harmful
            is_best = effect.moved(hint.value) == max(effect.moved(value) for value in effect.worth)
            assert is_best == (hint.kind == "right" or len(effect.worth) == 2)
        assert not {hint.name for hint in server.hints if hint.kind == "useless"} & effects.keys()


def test_few_random_configurations_are_disasters(servers):
    shares = []
    for server in servers:
        rng = Random(server.number)  # noqa: S311 - no secret
        settings = settings_of(server.family.space)
        drawn = [{each.name: _draw_value(each, rng) for each in settings} for _ in range(200)]
        shares.append(sum(any(each.holds(config) for each in server.disasters) for config in drawn) / 200)

    assert 0.01 < sum(shares) / len(shares) < 0.05


def _draw_value(setting, rng):
    return rng.choice(setting.choices) if setting.choices else value_at(setting, rng.random())


def test_nothing_acts_on_an_idle_server_and_it_is_as_noisy_as_its_twin():
    idle, twin = draw_idle_server(3), draw_server(3)

    assert idle.truth({"sendfile": False, "open_file_cache": 1000}) == 0.0
    assert idle.noise == twin.noise
