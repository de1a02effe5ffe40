"""What ships has numbers that a person would write, and the rules of its space hold for them."""

from pathlib import Path

import pytest

from tests.unit.simulation import space_of
from tests.unit.space.samples import WHOLE, load
from tuner.space import Space


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Space:
    return load(WHOLE, tmp_path_factory.mktemp("whole"))


def rounded(space: Space, **values: object) -> dict[str, object]:
    found = space.round(space.complete(values, fit=True))
    assert not space.violations(found)
    return {name: found[name] for name in values}


@pytest.mark.parametrize(
    ("drawn", "written"), [(483_788, 500_000), (1_234, 1_000), (287, 300), (1_000_000, 1_000_000)]
)
def test_counts_become_the_coarsest_number_that_is_near(drawn: int, written: int) -> None:
    assert rounded(space_of("keepalive_requests"), keepalive_requests=drawn) == {
        "keepalive_requests": written
    }


def test_sizes_become_powers_of_two_or_few_parts_of_one(whole: Space) -> None:
    assert rounded(whole, **{"buffer.size": 516_096}) == {"buffer.size": 524_288}
    assert rounded(whole, **{"buffer.size": 45_056}) == {"buffer.size": 49_152}
    assert rounded(space_of("access_log_buffer"), access_log_buffer=522) == {"access_log_buffer": 512}
    assert rounded(space_of("connection_pool_size"), connection_pool_size=304) == {
        "connection_pool_size": 320
    }


def test_what_is_short_or_has_nothing_coarser_near_keeps_its_digits(whole: Space) -> None:
    assert rounded(whole, threads=30, timeout_s=2.8137) == {"threads": 30, "timeout_s": 3.0}
    assert rounded(whole, threads=7) == {"threads": 7}
    assert rounded(whole, threads=137, spare=137) == {"threads": 140, "spare": 140}


def test_defaults_special_values_hints_and_presets_stay() -> None:
    space = space_of("open_file_cache", "listen_backlog", "worker_processes")
    given = {"open_file_cache": 0, "listen_backlog": 511, "worker_processes": "auto"}

    assert rounded(space, **given) == given
    article = space_of()
    for preset in article.presets:
        config = article.complete(preset.values)
        assert article.round(config) == config


@pytest.mark.parametrize("name", ["threads", "requests", "timeout_s", "buffer.size", "chunk", "pair[0]"])
def test_what_was_rounded_stays_as_it_is(whole: Space, name: str) -> None:
    for value in (10 * 1.15**step for step in range(90)):
        drawn = value / 100 if name == "timeout_s" else round(value)
        once = whole.round(whole.complete({name: drawn}, fit=True))
        assert whole.round(once) == once


def test_what_follows_is_computed_anew_and_bounds_hold(whole: Space) -> None:
    config = whole.round(whole.complete({"processes": 7, "started": 7, "threads": 187, "spare": 187}))

    assert (config["processes"], config["threads"], config["workers"]) == (7, 200, 1400)
    assert config["spare"] >= config["threads"]


def test_where_a_rule_forbids_the_coarse_number_the_finer_one_is_taken(tmp_path: Path) -> None:
    drawn = {"processes": 8, "threads": 487, "spare": 487}
    for most, threads in ((4000, 500), (3950, 490)):
        space = load(WHOLE.replace("40 * connections", str(most)), tmp_path)
        assert space.round(space.complete(drawn))["threads"] == threads
