"""Draws that lean on hints do so as often as their odds say, and leave every value reachable."""

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tuner.optimize.acquisition import change
from tuner.optimize.catalogue import make_optimizer
from tuner.optimize.encoding import Encoding
from tuner.optimize.leaning import UNIFORM, Leaning
from tuner.optimize.optimizer import Observation
from tuner.optimize.replay import shared
from tuner.optimize.sparse import draw_sparse, follow_hints, lean
from tuner.space import Dimension, Hint

DRAWS = 3000
NUMBER = Dimension(name="number", parameter="number", kind="int", low=0, high=100)
SWITCH = Dimension(name="switch", parameter="switch", kind="categorical", choices=(False, True))
CHOICE = Dimension(name="choice", parameter="choice", kind="categorical", choices=("a", "b", "c", "d"))
OTHERS = tuple(
    Dimension(name=f"other{number}", parameter=f"other{number}", kind="float", low=0.0, high=1.0)
    for number in range(6)
)
DEFAULT = {"number": 50, "switch": False, "choice": "a", **{each.name: 0.5 for each in OTHERS}}


def hinted(dimension: Dimension, odds: float = 3, **what: object) -> Dimension:
    return replace(dimension, hint=Hint(odds=odds, **what))


def about(share: float, expected: float, draws: int = DRAWS) -> bool:
    """Compare a share with its probability: four standard deviations of a binomial share."""
    return abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / draws)


def sparse(*dimensions: Dimension, seed: int = 1, draws: int = DRAWS) -> list[dict]:
    rng = Random(seed)  # noqa: S311 - no secret
    space = (*dimensions, *OTHERS)
    default = {each.name: DEFAULT[each.name] for each in space}
    return [draw_sparse(space, default, rng=rng) for _ in range(draws)]


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_number_goes_where_a_hint_points_when_it_is_right_and_elsewhere_when_not(direction):
    dimension = hinted(NUMBER, direction=direction)
    rng = Random(3)  # noqa: S311 - no secret

    for is_right in (True, False):
        is_up = is_right == (direction == "up")
        drawn = [lean(dimension, 50, rng, is_right=is_right) for _ in range(200)]
        assert all((value > 50) == is_up and value != 50 for value in drawn)


@pytest.mark.parametrize("odds", [1, 3, 9])
def test_the_share_that_follows_is_the_odds_of_those_that_lean_and_half_of_the_others(odds):
    share = 0.4
    chance = odds / (1 + odds)
    leaning, uniform = (1 - UNIFORM) * share * (1 + chance), UNIFORM * share
    expected = (leaning * chance + uniform / 2) / (leaning + uniform)
    changed = [
        point["number"]
        for point in sparse(hinted(NUMBER, odds, direction="up"), draws=2 * DRAWS)
        if point["number"] != 50
    ]

    assert about(sum(value > 50 for value in changed) / len(changed), expected, len(changed))


def test_a_hinted_parameter_is_changed_more_often_than_the_others():
    points = sparse(hinted(NUMBER, direction="up"))

    shares = {name: np.mean([point[name] != DEFAULT[name] for point in points]) for name in points[0]}
    assert shares["number"] > 1.3 * max(share for name, share in shares.items() if name != "number")


def test_a_value_is_drawn_most_often_and_every_other_one_sometimes():
    counts = {
        choice: sum(point["choice"] == choice for point in sparse(hinted(CHOICE, value="c")))
        for choice in CHOICE.choices
    }

    assert counts["c"] > 3 * max(counts["b"], counts["d"])
    assert min(counts.values()) > 0.02 * DRAWS


@pytest.mark.parametrize(
    ("dimension", "wanted"),
    [
        (hinted(NUMBER, 20, direction="down"), lambda point: point["number"] > 90),
        (hinted(NUMBER, 20, value=0), lambda point: 80 < point["number"] < 90),
        (hinted(SWITCH, 20, value=False), lambda point: point["switch"]),
        (hinted(CHOICE, 20, value="b"), lambda point: point["choice"] == "d"),
    ],
)
def test_what_a_wrong_hint_hides_is_found_all_the_same(dimension, wanted):
    assert sum(map(wanted, sparse(dimension))) > 0.01 * DRAWS


def test_what_the_default_follows_already_is_drawn_as_without_a_hint():
    for followed in (
        hinted(CHOICE, value="a"),
        replace(hinted(NUMBER, direction="up"), high=50),
    ):
        plain = replace(followed, hint=None)

        assert sparse(followed, draws=50) == sparse(plain, draws=50)


class TestPointsThatFollowHints:
    SPACE = (
        hinted(NUMBER, direction="up"),
        hinted(SWITCH, value=True),
        hinted(CHOICE, value="c"),
        replace(hinted(OTHERS[0], direction="down"), log=True, low=0.01),
        hinted(OTHERS[1], value=0.5),
        *OTHERS[2:],
    )

    def follow(self, *dimensions: Dimension, seed: int | str = 1) -> list[dict]:
        default = {each.name: DEFAULT[each.name] for each in dimensions}
        return follow_hints(dimensions, default, rng=Random(seed))  # noqa: S311 - no secret

    def changed(self, point: dict) -> set[str]:
        return {name for name in point if point[name] != DEFAULT[name]}

    def test_the_first_follows_all_that_the_default_does_not_follow_already(self):
        point = self.follow(*self.SPACE)[0]

        assert self.changed(point) == {"number", "switch", "choice", "other0"}
        assert (point["switch"], point["choice"]) == (True, "c")
        assert point["number"] == round(0.25 * 50 + 0.75 * 100)
        assert math.isclose(math.log(point["other0"] / 0.01), 0.25 * math.log(0.5 / 0.01))

    @pytest.mark.parametrize("seed", range(5))
    def test_the_others_are_two_halves_of_it(self, seed):
        whole, first, second = self.follow(*self.SPACE, seed=seed)

        assert self.changed(first) | self.changed(second) == self.changed(whole)
        assert not self.changed(first) & self.changed(second)
        assert len(self.changed(first)) == len(self.changed(second))
        assert whole == first | {name: second[name] for name in self.changed(second)}

    def test_of_one_hint_there_are_no_halves_and_of_none_there_is_nothing(self):
        assert len(self.follow(self.SPACE[0], *OTHERS)) == 1
        assert self.follow(NUMBER, hinted(CHOICE, value="a"), *OTHERS) == []

    @pytest.mark.parametrize("name", ["noisy-gp", "tpe"])
    def test_they_come_first_each_of_them_once_whatever_became_of_it(self, name):
        wanted = self.follow(*self.SPACE, seed="7/hints")
        optimizer, seen = make_optimizer(name, {each.name: DEFAULT[each.name] for each in self.SPACE}), []
        for log_ratio in (0.1, None, -0.2, 0.0):
            point = optimizer.suggest(self.SPACE, seen, seed=7).point
            seen.append(Observation(point=point, log_ratio=log_ratio, variance=1e-4, constraints={}))

        assert [seen[row].point for row in range(3)] == wanted
        assert seen[3].point not in wanted

    def test_one_that_cannot_be_used_is_passed_over(self):
        wanted = self.follow(*self.SPACE, seed="7/hints")
        optimizer = make_optimizer("noisy-gp", {each.name: DEFAULT[each.name] for each in self.SPACE})

        assert optimizer.suggest(self.SPACE, [], seed=7, refused=1).point == wanted[1]
        assert optimizer.suggest(self.SPACE, [], seed=7, refused=3).point not in wanted


class TestWhatIsExpectedOfPoints:
    """Up to three prices of a line for a hint that is three to one."""

    SPACE = (
        hinted(NUMBER, direction="up"),
        hinted(SWITCH, value=True),
        hinted(CHOICE, value="c"),
        hinted(OTHERS[0], value=0.9),
        hinted(OTHERS[1], value=0.5),
        *OTHERS[2:],
    )

    def expect(self, *changed: dict) -> np.ndarray:
        encoding = Encoding(shared(self.SPACE))
        leaning = Leaning.of({each.name: each.hint for each in self.SPACE if each.hint}, encoding)
        default = {each.name: DEFAULT[each.name] for each in self.SPACE}
        points = encoding.encode([default | each for each in changed])
        return leaning.expect(points, encoding.encode([default])[0])

    def test_nothing_is_expected_of_the_default_nor_of_what_no_hint_names(self):
        assert not self.expect({}, {"other1": 0.2}, {"other4": 1.0}, {"choice": "b"}, {"number": 0}).any()

    def test_the_chances_of_all_that_is_followed_add_up(self):
        one, two, all_of_them = self.expect(
            {"switch": True},
            {"switch": True, "choice": "c"},
            {"switch": True, "choice": "c", "number": 100, "other0": 0.9},
        )

        assert (one, two, all_of_them) == pytest.approx((0.75, 1.5, 3.0))

    def test_of_a_number_the_more_the_nearer_it_comes(self):
        to_value = self.expect(*({"other0": 0.5 + step / 100} for step in range(51)))
        upwards = self.expect(*({"number": number} for number in range(50, 101)))

        assert int(to_value.argmax()) == 40
        assert (np.diff(to_value[:41]) > 0).all()
        assert (np.diff(to_value[40:]) < 0).all()
        assert (np.diff(upwards) >= 0).all()
        assert upwards[-1] == pytest.approx(0.75)

    def test_a_number_that_follows_a_direction_as_the_first_points_do_follows_it_wholly(self):
        default = {each.name: DEFAULT[each.name] for each in self.SPACE}
        whole, first, second = follow_hints(self.SPACE, default, rng=Random(1))  # noqa: S311 - no secret
        expected = self.expect(whole, first, second)

        assert expected[0] == pytest.approx(3.0, abs=0.02)
        assert expected[1] + expected[2] == pytest.approx(expected[0])

    def test_what_is_off_follows_nothing(self):
        encoding = Encoding(shared(self.SPACE))
        leaning = Leaning.of({each.name: each.hint for each in self.SPACE if each.hint}, encoding)
        nowhere = np.full((1, len(self.SPACE)), np.nan)

        assert leaning.expect(nowhere, encoding.encode([DEFAULT])[0]) == pytest.approx([0.0])
        assert np.isfinite(leaning.expect(encoding.encode([DEFAULT]), nowhere[0])).all()


class TestChangesOfGoodPoints:
    SPACE = (hinted(NUMBER, direction="up"), hinted(CHOICE, value="c"), SWITCH, *OTHERS)

    def change(self, point: dict, seed: int = 1) -> tuple[np.ndarray, list[str]]:
        encoding = Encoding(shared(self.SPACE))
        leaning = Leaning.of({each.name: each.hint for each in self.SPACE if each.hint}, encoding)
        parents = np.repeat(encoding.encode([point]), DRAWS, axis=0)
        rng = np.random.default_rng(seed)
        return change(parents, 1, 3, encoding, rng, leaning), list(encoding.names)

    def test_numbers_go_where_the_hint_points_more_often(self):
        points, names = self.change(DEFAULT)
        numbers = points[:, names.index("number")]
        before = Encoding(shared(self.SPACE)).encode([DEFAULT])[0, names.index("number")]
        changed = numbers[numbers != before]

        # Two thirds of the points lean, and there the number is changed twice as often.
        assert 0.55 < np.mean(changed > before) < 0.75

    def test_a_hinted_choice_is_taken_more_often_and_the_others_sometimes(self):
        points, names = self.change(DEFAULT)
        counts = np.bincount(points[:, names.index("choice")].astype(int), minlength=4)

        assert counts[2] > 2 * max(counts[1], counts[3])
        assert min(counts) > 0

    def test_a_point_that_follows_its_hints_is_changed_as_without_them(self):
        points, names = self.change(DEFAULT | {"choice": "c", "number": 100})
        away = np.mean(points[:, names.index("choice")] != 2)
        others = np.mean(points[:, names.index("switch")] != 0)

        assert 0 < away < 1.5 * others

    def test_every_value_stays_within_the_space(self):
        points, _ = self.change(DEFAULT)
        encoding = Encoding(shared(self.SPACE))

        assert np.array_equal(encoding.keep(points), points)
        assert np.array_equal(encoding.snap(points), points)
        assert ((points >= 0) & (points <= np.where(encoding.is_choice, encoding.levels - 1, 1))).all()


@pytest.mark.parametrize("name", ["noisy-gp", "tpe"])
def test_an_optimizer_leans_on_the_hints_of_the_dimensions(name):
    dimensions = (hinted(CHOICE, 9, value="c"), *OTHERS)
    default = {each.name: DEFAULT[each.name] for each in dimensions}
    plain = (CHOICE, *OTHERS)

    def share(space: tuple[Dimension, ...]) -> float:
        optimizer = make_optimizer(name, default)
        return np.mean(
            [optimizer.suggest(space, [], seed=seed).point["choice"] == "c" for seed in range(200)]
        )

    assert share(dimensions) > 2 * share(plain)
