"""What a winner makes of installed files when their adapter refuses a part of it."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.commands.differences import rewrite_accepted
from tuner.errors import ConfigRejected
from tuner.ports import Config, Files

MAIN = PurePosixPath("/etc/server.conf")
NAMES = "abcdef"


def make_adapter(needs: dict[str, set[str]]):
    """Make a rewrite that refuses a setting without those that it needs; one that needs itself always."""

    def rewrite(config: Config) -> Files:
        for name in config:
            if missing := needs.get(name, set()) - (config.keys() - {name}):
                raise ConfigRejected(
                    f"server: {name} needs {', '.join(sorted(missing))}. Take it out of the space."
                )
        return {MAIN: " ".join(sorted(config)).encode()}

    return rewrite


def test_what_is_refused_is_named_with_the_reason_and_costs_nothing_else() -> None:
    files, refused = rewrite_accepted(make_adapter({"b": {"b"}}), dict.fromkeys("abc", 1))

    assert files == {MAIN: b"a c"}
    assert refused == {"b": "server: b needs b"}


@pytest.mark.parametrize("order", ["abcz", "zcba", "czab"])
def test_a_setting_that_needs_another_is_accepted_in_any_order(order: str) -> None:
    files, refused = rewrite_accepted(
        make_adapter({"a": {"b"}, "b": {"c"}, "z": {"z"}}), dict.fromkeys(order, 1)
    )

    assert files == {MAIN: b"a b c"}
    assert refused.keys() == {"z"}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES), max_size=2)),
    st.lists(st.sampled_from(NAMES), unique=True),
)
def test_each_setting_is_in_the_files_or_named_and_no_more_would_be_accepted(
    needs: dict[str, set[str]], names: list[str]
) -> None:
    rewrite = make_adapter(needs)
    files, refused = rewrite_accepted(rewrite, dict.fromkeys(names, 1))

    written = set(files[MAIN].decode().split())
    assert written | refused.keys() == set(names)
    assert written.isdisjoint(refused)
    assert all(refused.values())
    for name in refused:
        with pytest.raises(ConfigRejected):
            rewrite(dict.fromkeys((*written, name), 1))
