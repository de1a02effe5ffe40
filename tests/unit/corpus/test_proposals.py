from dataclasses import replace

import pytest

from tests.unit.corpus.samples import HERE, make_study, try_out
from tests.unit.simulation import TUNED, space_of, without_hints
from tuner.corpus.corpus_study import Tried
from tuner.corpus.proposals import MOST_OBSERVATIONS, MOST_ODDS, find_alike, propose

SPACE = without_hints(space_of(*TUNED))


def advise(corpus, space=SPACE):
    return propose(find_alike(corpus, HERE, "goodput", space), space)


def test_what_helped_elsewhere_is_proposed_with_its_evidence():
    corpus = [make_study(number=number) for number in range(1, 6)]

    (proposal,) = advise(corpus)

    assert (proposal.parameter, proposal.value) == ("open_file_cache", 1000)
    assert proposal.chance > 0.9
    assert proposal.odds == MOST_ODDS
    assert proposal.gain.interval[0] < 0.18 < proposal.gain.interval[1] + 0.1
    assert [each.study.id for each in proposal.known] == [each.id for each in corpus]


def test_what_harmed_elsewhere_is_not_proposed():
    harmful = [make_study(try_out({"open_file_cache": 1000}, -0.2), number=number) for number in range(1, 6)]

    assert advise(harmful) == []


def test_studies_that_contradict_each_other_propose_nothing():
    corpus = [
        make_study(
            try_out({"open_file_cache": 1000}, 0.3 * sign),
            try_out({"worker_connections": 4096}, 0.0),
            number=n,
        )
        for n, sign in enumerate((1, -1, 1, -1, 1, -1), 1)
    ]

    assert advise(corpus) == []


def test_what_failed_or_broke_a_bound_is_not_proposed():
    broken = [
        make_study(
            try_out({"open_file_cache": 1000}, 0.5, is_feasible=False),
            try_out({"open_file_cache": 2000}, None, is_feasible=False),
            number=number,
        )
        for number in range(1, 6)
    ]

    assert advise(broken) == []


def test_the_most_alike_come_first_and_strangers_not_at_all():
    near, far = make_study(number=1), make_study(number=2, here=replace(HERE, cores=64))
    strange = make_study(number=3, here=replace(HERE, servers={"apache": "2.4"}))
    by_cost = replace(make_study(number=4), metric="goodput_per_cpu")

    alike = find_alike([far, strange, by_cost, near], HERE, "goodput", SPACE)

    assert [each.study.id for each in alike] == [near.id, far.id]


@pytest.mark.parametrize("value", [{"no_such_setting": 1}, {"lingering_close": "never"}])
def test_what_this_host_lacks_is_left_out(value):
    corpus = [make_study(try_out(value, 0.5), number=number) for number in range(1, 4)]

    assert advise(corpus) == []


def test_a_study_that_is_there_twice_counts_once():
    assert len(find_alike([make_study(number=1), make_study(number=1)], HERE, "goodput", SPACE)) == 1


def test_of_very_many_configurations_the_surest_are_asked():
    tried = [
        Tried(
            changes={"worker_connections": 1000 + number}, log_gain=0.1, starts=1, is_feasible=True,
            deviation=0.01 if number < 50 else 0.5,
        )
        for number in range(2000)
    ]  # fmt: skip
    corpus = [make_study(*tried, number=number) for number in range(1, 5)]

    alike = find_alike(corpus, HERE, "goodput", SPACE)

    assert sum(len(each.seen) for each in alike) <= MOST_OBSERVATIONS
    assert sum(seen.variance < 0.001 for seen in alike[0].seen) == 51


def test_an_empty_corpus_proposes_nothing():
    assert advise([]) == []
