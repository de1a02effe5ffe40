"""One study of a drawn server: the same again, and true to what shipped."""

from dataclasses import replace

import pytest

from benchmarks.campaign_noise import History
from benchmarks.campaign_play import Arm, idle_changes, play, without_presets
from benchmarks.campaign_servers import draw_server
from benchmarks.campaign_spaces import load_family

BLIND = Arm(name="ours-without-hints", knows_presets=False, knows_hints=False)


@pytest.mark.parametrize("number", [0, 6])
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


def test_only_changes_that_can_be_put_back_at_no_cost_are_idle():
    server = next(server for server in map(draw_server, range(50)) if len(_gains(server)) >= 2)
    space = load_family(server.family)
    acting = _gains(server)
    idle = {each.name for each in space.parameters} - {effect.setting.name for effect in server.effects}
    moved = next(name for name in sorted(idle) if _other(space, name) is not None)

    config = space.complete({**acting, moved: _other(space, moved)}, fit=True)

    assert moved in idle_changes(server, space, config)
    assert not set(acting) & set(idle_changes(server, space, config))


def _gains(server):
    """Return the best values of choices that are worth something by themselves and meet nothing else."""
    return {
        effect.setting.name: max(effect.worth, key=effect.worth.get)
        for number, effect in enumerate(server.effects)
        if effect.setting.choices and not effect.harmful and effect.size > 0.05
        and not any(number in pair[:2] for pair in server.interactions)
    }  # fmt: skip


def _other(space, name):
    parameter = next(each for each in space.parameters if each.name == name)
    if parameter.pinned or parameter.when is not None or parameter.kind != "bool":
        return None
    return not parameter.default


def test_a_history_is_a_matter_of_time_alone():
    noise = draw_server(4).noise
    first, second = (History(noise, "one") for _ in range(2))

    assert [first.level(at, 1.0) for at in range(100)] == [second.level(at, 1.0) for at in range(100)]
    assert [first.is_stolen(at, 1.0) for at in range(100)] == [second.is_stolen(at, 1.0) for at in range(100)]
