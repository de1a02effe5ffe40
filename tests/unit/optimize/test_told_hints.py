"""What a study file tells is tried at first by itself, and believed until that trial refutes it."""

from dataclasses import replace

import pytest

from tuner.optimize.catalogue import make_optimizer
from tuner.optimize.optimizer import Observation
from tuner.optimize.sparse import believe, follow_told
from tuner.space import Dimension, Hint

TOLD = (
    Dimension(
        name="number", parameter="number", kind="int", low=0, high=100,
        hint=Hint(odds=3, value=90), is_told=True,
    ),
    Dimension(
        name="switch", parameter="switch", kind="categorical", choices=(False, True),
        hint=Hint(odds=3, value=False), is_told=True, own_hint=Hint(odds=9, value=True),
    ),
    Dimension(
        name="choice", parameter="choice", kind="categorical", choices=("a", "b"),
        hint=Hint(odds=3, value="b"),
    ),
)  # fmt: skip
DEFAULT = {"number": 50, "switch": False, "choice": "a"}
FOLLOWED = {"number": 90, "switch": False, "choice": "a"}


def seen(log_ratio: float | None, point: dict = FOLLOWED, **more: object) -> Observation:
    return Observation(point=point, log_ratio=log_ratio, variance=1e-4, constraints={}, **more)


def hints(observations: list[Observation]) -> dict[str, Hint | None]:
    return {each.name: each.hint for each in believe(TOLD, DEFAULT, observations)}


def test_all_that_is_told_is_followed_at_once_and_nothing_else():
    assert follow_told(TOLD, DEFAULT) == FOLLOWED
    assert follow_told([replace(each, is_told=False) for each in TOLD], DEFAULT) is None


@pytest.mark.parametrize("log_ratio", [-0.2, 0.0, None])
def test_what_is_no_better_than_the_default_or_fails_gives_way_to_what_the_space_says(log_ratio):
    assert hints([seen(log_ratio)]) == {
        "number": None, "switch": Hint(odds=9, value=True), "choice": Hint(odds=3, value="b"),
    }  # fmt: skip


def test_it_is_believed_while_nothing_or_something_better_came_of_it():
    believed = {each.name: each.hint for each in TOLD}
    other, pending = seen(-0.5, DEFAULT), seen(-0.5, is_pending=True)

    assert hints([]) == hints([other, pending]) == hints([seen(0.02)]) == believed


@pytest.mark.parametrize("name", ["noisy-gp", "tpe"])
def test_it_comes_first_and_then_what_is_believed_by_then(name):
    optimizer = make_optimizer(name, DEFAULT)
    first = optimizer.suggest(TOLD, [], seed=7).point
    after_truth, after_lie = (
        optimizer.suggest(TOLD, [seen(log_ratio)], seed=7).point for log_ratio in (0.1, -0.1)
    )

    assert first == FOLLOWED
    assert after_truth == {"number": 90, "switch": False, "choice": "b"}
    assert after_lie == {"number": 50, "switch": True, "choice": "b"}
