"""One study of a drawn server: the same again, and true to what shipped."""

from dataclasses import replace

import pytest

from benchmarks.campaign.effects import Effect
from benchmarks.campaign.noise import History
from benchmarks.campaign.play import Arm, allowed_rate, idle_changes, play, with_hints, without_presets
from benchmarks.campaign.regions import Failing, Region, Side
from benchmarks.campaign.servers import Server, draw_server
from benchmarks.campaign.spaces import FAMILIES, load_family, settings_of
from tests.more import leave_to_more

BLIND = Arm(name="ours-without-hints", knows_presets=False, knows_hints=False)


@pytest.mark.parametrize("number", leave_to_more([0, 6]))
def test_the_same_seed_gives_the_same_result(number):
    first, second = (play(number, BLIND) for _ in range(2))

    assert replace(first, cpu_s=0.0) == replace(second, cpu_s=0.0)
    assert first.searched > 10
    assert first.seconds <= 310
    assert first.gain <= max(first.best, 0.0) + 0.05


def test_without_presets_no_space_has_any():
    space = without_presets(load_family(draw_server(0).family))

    assert not space.presets
    assert not space.open().presets


@pytest.mark.parametrize("number", range(5))
def test_a_space_knows_what_the_drawn_experts_say_and_nothing_else(number):
    server = draw_server(number)
    space = with_hints(load_family(server.family), server.hints)

    told = {each.name: each.hint for each in space.parameters if each.hint}
    free = {each.name for each in space.parameters if not each.pinned}
    assert told.keys() == {hint.name for hint in server.hints if hint.name in free | told.keys()}
    assert {each.parameter for each in space.dimensions if each.hint} == told.keys() & free
    assert not any(each.hint for each in with_hints(space, ()).dimensions)
    assert space.decode(space.encode(space.default())) == space.default()


def of_choice(name, size):
    """Return what a choice does that is worth so much wherever it is not at its default."""
    setting = next(each for each in settings_of("nginx") if each.name == name)
    return Effect(
        setting=setting, size=size, harmful=False, levels=(1.0, 1.0), curve=None, steepness=1.0, floor=0.0
    )  # fmt: skip


def test_only_changes_that_can_be_put_back_at_no_cost_are_idle():
    effects = (of_choice("sendfile", 0.2), of_choice("multi_accept", 0.004), of_choice("aio", 0.006))
    server = Server(number=0, family=FAMILIES[0], effects=effects, noise=draw_server(0).noise)
    space = load_family(server.family)
    config = space.complete(
        {"sendfile": False, "multi_accept": True, "aio": "threads", "listen_reuseport": True}
    )

    assert idle_changes(server, space, config) == ["multi_accept", "listen_reuseport"]


def test_a_change_that_holds_failures_down_is_not_idle():
    setting = of_choice("multi_accept", 0.0).setting
    helps = Region(sides=(Side(setting=setting, choice=True),), amount=-3.0)
    failing = Failing(base=0.002, factors=(helps,))
    server = Server(number=0, family=FAMILIES[0], failing=failing, noise=draw_server(0).noise)
    space = load_family(server.family)
    config = space.complete({"multi_accept": True, "listen_reuseport": True})

    assert failing.rate(config) < allowed_rate(failing.rate(space.default()))
    assert idle_changes(server, space, config) == ["multi_accept", "listen_reuseport"]

    ships_more = replace(server, failing=replace(failing, additions=(_where("listen_reuseport", 0.001),)))
    assert idle_changes(ships_more, space, config) == ["listen_reuseport"]


def _where(name, amount):
    setting = of_choice(name, 0.0).setting
    return Region(sides=(Side(setting=setting, choice=True),), amount=amount)


def test_a_history_is_a_matter_of_time_alone():
    noise = draw_server(4).noise
    first, second = (History(noise, "one") for _ in range(2))

    assert [first.level(at, 1.0) for at in range(100)] == [second.level(at, 1.0) for at in range(100)]
    assert [first.is_stolen(at, 1.0) for at in range(100)] == [second.is_stolen(at, 1.0) for at in range(100)]
