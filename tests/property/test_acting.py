"""What cannot act is never searched, and what is known of a load only ever takes away from the search."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.more import examples
from tests.property.space_strategies import HOST
from tests.unit.space.test_built_in_spaces import in_force
from tuner.space import Space, SpaceFacts, available_spaces, load_space

loads = st.fixed_dictionaries(
    {
        "keepalive": st.booleans(),
        "pipelining": st.booleans(),
        "page_bytes": st.integers(0, 10**9),
        "pages": st.integers(1, 1000),
        "protocol": st.sampled_from(["http/1.1", "h2c", "h2"]),
        "tls": st.booleans(),
        "fastopen": st.booleans(),
        "loopback": st.booleans(),
        "installed": st.booleans(),
    }
)
names = st.sampled_from(available_spaces())


def load(name: str, facts: dict, connections: int = 100) -> Space:
    known = SpaceFacts(names=HOST | {"connections": connections}, current=in_force(name), load=facts)
    return load_space([name], facts=known, base=Path("/"))


def searched(space: Space) -> set[str]:
    return {each.parameter for each in space.dimensions}


@settings(max_examples=examples(40), deadline=None)
@given(names, loads, st.integers(1, 100_000))
def test_what_cannot_act_is_no_dimension_and_has_its_default(name, facts, connections):
    space = load(name, facts, connections)
    highest = {each.name: each.choices[-1] if each.choices else each.high for each in space.dimensions}

    assert not searched(space) & space.inert.keys()
    config, default = space.decode(highest), space.default()
    fixed = [each for each in space.inert if each in config and each in default]
    moving = {each.name for each in space.parameters if each.expressions}
    assert [each for each in fixed if config[each] != default[each] and each not in moving] == []


@settings(max_examples=examples(40), deadline=None)
@given(names, loads, st.data())
def test_whoever_knows_less_of_the_load_searches_more(name, facts, data):
    told = data.draw(st.sets(st.sampled_from(sorted(facts))))

    known, less = load(name, facts), load(name, {each: facts[each] for each in told})

    assert searched(known) <= searched(less)
    assert known.default() == less.default()
