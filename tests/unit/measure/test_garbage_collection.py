"""Objects that are there before are left alone by the collector, and only as long as it is asked to."""

import gc
import weakref

import pytest

from tuner.measure.garbage_collection import short_collections


class Knot:
    """Refers to itself, so that the collector alone can free it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_was_there_before_is_not_looked_at_until_the_end():
    before = Knot()
    seen = weakref.ref(before)

    with short_collections():
        del before
        gc.collect()
        assert seen() is not None
    gc.collect()

    assert seen() is None


def test_new_garbage_is_still_collected():
    with short_collections():
        seen = weakref.ref(Knot())
        gc.collect()
        assert seen() is None


def test_an_error_ends_it_too():
    kept = gc.get_freeze_count()

    with pytest.raises(ZeroDivisionError), short_collections():
        _ = 1 / 0

    assert gc.get_freeze_count() == kept
