import math
from dataclasses import replace
from random import Random

import numpy as np
import optuna
import pytest

from tests.unit.simulation import space_of, without_hints
from tuner.errors import UsageError
from tuner.optimize.catalogue import OPTIMIZERS, make_optimizer
from tuner.optimize.model import predict
from tuner.optimize.optimizer import Earlier, Observation
from tuner.optimize.replay import distributions
from tuner.optimize.sparse import draw_sparse

SPACE = without_hints(space_of())
DEFAULT = SPACE.encode(SPACE.default())
DIMENSIONS = SPACE.dimensions
HERE = [name for name in OPTIMIZERS if name != "gp"]
"""`gp` needs torch, which tests do without."""


def observe(count, seed=0):
    """A history in which every fifth trial gave nothing."""
    rng = Random(seed)  # noqa: S311 - no secret
    seen = []
    for number in range(count):
        config = SPACE.decode(draw_sparse(DIMENSIONS, DEFAULT, rng=rng))
        crashed = number % 5 == 4
        seen.append(
            Observation(
                point=SPACE.encode(config),
                log_ratio=None if crashed else 0.2 * bool(config["open_file_cache"]) + rng.gauss(0, 0.02),
                variance=0.0004,
                constraints={"started": 1.0 if crashed else -1.0},
            )
        )
    return seen


def is_within(point):
    known = distributions(DIMENSIONS)
    return point.keys() == known.keys() and all(
        known[name]._contains(known[name].to_internal_repr(value)) for name, value in point.items()
    )


@pytest.mark.parametrize("count", [1, 25])
@pytest.mark.parametrize("name", [*HERE, "optuna.samplers:TPESampler", "optuna.samplers:NSGAIISampler"])
def test_every_optimizer_suggests_within_the_space(name, count):
    suggestion = make_optimizer(name, DEFAULT).suggest(DIMENSIONS, observe(count), seed=3)

    assert is_within(suggestion.point)


@pytest.mark.parametrize("name", HERE)
def test_a_resumed_study_is_suggested_the_same(name):
    seen = observe(14)
    first, again = (make_optimizer(name, DEFAULT).suggest(DIMENSIONS, seen, seed=3) for _ in range(2))

    assert first == again


@pytest.mark.parametrize("name", HERE)
def test_what_could_not_be_used_is_not_suggested_again(name):
    """A model may come back to what it holds for best, but hardly ever."""
    optimizer, new = make_optimizer(name, DEFAULT), 0
    for history in range(3, 6):
        seen = observe(14, seed=history)
        points = [optimizer.suggest(DIMENSIONS, seen, seed=3, refused=refused).point for refused in range(5)]
        new += len({tuple(point.items()) for point in points})

    assert new >= 15 - (name == "noisy-gp")


@pytest.mark.parametrize("name", HERE)
def test_another_observation_gives_another_point(name):
    optimizer, seen = make_optimizer(name, DEFAULT), observe(16)

    points = [optimizer.suggest(DIMENSIONS, seen[:count], seed=3).point for count in range(12, 16)]

    assert len({tuple(point.items()) for point in points}) == 4


def test_qmc_is_one_sequence_that_covers_the_space_evenly():
    optimizer, seen = make_optimizer("qmc", DEFAULT), observe(1)
    wide = max((each for each in DIMENSIONS if each.kind == "int" and each.log), key=lambda each: each.high)
    name, low, high = wide.name, wide.low, wide.high
    places = []
    for _ in range(16):
        point = optimizer.suggest(DIMENSIONS, seen, seed=3).point
        places.append(math.log(point[name] / low) / math.log(high / low))
        seen.append(Observation(point=point, log_ratio=0.0, variance=0.0004, constraints={"started": -1.0}))

    assert {int(place * 3.999) for place in places} == {0, 1, 2, 3}


def test_cmaes_climbs():
    """Its generations survive that every suggestion begins with a new study."""
    optimizer, seen = make_optimizer("cmaes", DEFAULT), []
    numbers = [each for each in DIMENSIONS if each.kind != "categorical"]

    def place(each, value):
        if each.log:
            return math.log(value / each.low) / math.log(each.high / each.low)
        return (value - each.low) / (each.high - each.low)

    worths = []
    for _ in range(45):
        point = optimizer.suggest(DIMENSIONS, seen, seed=3).point
        worths.append(-sum((place(each, point[each.name]) - 0.2) ** 2 for each in numbers))
        seen.append(Observation(point=point, log_ratio=worths[-1], variance=1e-6, constraints={}))

    assert sum(worths[-12:]) > sum(worths[1:13])


def test_ours_says_what_it_expects():
    seen = observe(20)

    suggestion = make_optimizer("noisy-gp", DEFAULT).suggest(DIMENSIONS, seen, seed=3)

    assert suggestion.expected_gain is None or 0 <= suggestion.expected_gain < 1
    expected = [
        make_optimizer("noisy-gp", DEFAULT).suggest(DIMENSIONS, seen[:count], seed=3).expected_gain
        for count in range(15, 20)
    ]
    assert any(gain is not None and gain > 0 for gain in expected)


def test_ours_leans_towards_what_was_good_before():
    """The histories know nothing of multi_accept, the earlier study does: it comes twice as often."""
    histories = [observe(10, seed=seed) for seed in (6, 7, 8)]
    good = {**DEFAULT, "multi_accept": True}
    earlier = Earlier(good=(good,), likeness=1.0, predict=lambda points: np.zeros(len(points)))

    def count(optimizer):
        points = [
            optimizer.suggest(DIMENSIONS, seen, seed=seed).point for seen in histories for seed in range(12)
        ]
        return sum(bool(point["multi_accept"]) for point in points)

    cold = count(make_optimizer("noisy-gp", DEFAULT))

    assert count(make_optimizer("noisy-gp", DEFAULT, earlier=[earlier])) >= 2 * cold > 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tpee", ["'tpee'", "tpe", "module:Class"]),
        ("nowhere:Sampler", ["nowhere", "Install"]),
        ("optuna.samplers:Nothing", ["Nothing", "correct the path"]),
        ("optuna.samplers:", ["cannot be imported"]),
        ("os:getcwd", ["no Optuna sampler"]),
        ("optuna.samplers:GridSampler", ["without arguments"]),
    ],
)
def test_a_wrong_name_is_refused_with_a_remedy(name, words):
    with pytest.raises(UsageError, match="optimizer: ") as refused:
        make_optimizer(name, DEFAULT).suggest(DIMENSIONS, observe(12), seed=1)

    for word in words:
        assert word in str(refused.value)


class Raises(optuna.samplers.RandomSampler):
    """A sampler with a defect."""

    def sample_relative(self, *_given):
        raise ZeroDivisionError("of nothing")


def test_what_somebody_elses_sampler_raises_is_told_as_its_fault():
    optimizer = make_optimizer(f"{__name__}:Raises", DEFAULT)

    with pytest.raises(
        UsageError,
        match=r"Raises' failed when tuner asked the sampler for .*: ZeroDivisionError: of nothing\. Use ",
    ):
        optimizer.suggest(DIMENSIONS, observe(2), seed=1)


def test_a_sampler_that_cannot_be_made_is_refused_before_the_study_begins():
    with pytest.raises(UsageError, match="GridSampler' failed when tuner made the sampler without arguments"):
        make_optimizer("optuna.samplers:GridSampler", DEFAULT)


@pytest.mark.parametrize("text", ["1 / 0", "nowhere", "import nowhere"])
def test_a_module_that_raises_is_told_with_what_it_raised(tmp_path, monkeypatch, text):
    (tmp_path / "faulty_sampler.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(UsageError, match=r"'faulty_sampler:Sampler' cannot be imported: \w+Error: "):
        make_optimizer("faulty_sampler:Sampler", DEFAULT)


def test_a_sampler_by_its_path_remembers_what_it_suggested():
    """A sequence goes on; asked anew each time it would give the same point again."""
    optimizer, seen = make_optimizer("optuna.samplers:QMCSampler", DEFAULT), observe(1)
    for _ in range(8):
        point = optimizer.suggest(DIMENSIONS, seen, seed=3).point
        seen.append(Observation(point=point, log_ratio=0.0, variance=0.0004, constraints={"started": -1.0}))

    assert len({tuple(each.point.items()) for each in seen}) == 9


def test_a_trial_whose_cost_nobody_knows_is_not_taken_for_a_failed_one():
    seen = [replace(each, cost=(0.0, 1e-4)) for each in observe(12) if each.log_ratio is not None]
    unknown = [replace(each, cost=None) for each in seen[:3]]

    def suggest(observations):
        return make_optimizer("noisy-gp", DEFAULT).suggest(DIMENSIONS, observations, seed=3).point

    assert suggest([*seen, *unknown]) == suggest(seen)


def test_the_model_of_goodput_is_the_same_whatever_it_costs():
    seen = observe(12)
    costly = [replace(each, cost=(0.1, 1e-4)) for each in seen]
    points = [each.point for each in seen[:3]]

    assert predict(DIMENSIONS, costly, points).tolist() == predict(DIMENSIONS, seen, points).tolist()


def test_what_a_missing_package_is_for_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)

    with pytest.raises(UsageError, match="'gp' needs the Python package torch"):
        make_optimizer("gp", DEFAULT)


optuna.logging.set_verbosity(optuna.logging.ERROR)
