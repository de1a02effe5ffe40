"""Positions within bounds: uniform on the parameter's own scale, and exact on the way back."""

import math

from hypothesis import assume, example, given
from hypothesis import strategies as st

from tuner.space import Parameter
from tuner.space.dimensions import decode_position, encode_position
from tuner.space.values import count_steps, fit_number, grid_value, is_on_grid, round_number

LARGEST_BOUND = 2**40
"""Above any setting; beyond it a position has too few digits to name every whole number."""

positions = st.floats(0, 1)


def numeric(kind: str, *, log: bool = False, step: float | None = None) -> Parameter:
    return Parameter(name="x", server="demo", kind=kind, default=1, log=log, step=step)


@st.composite
def whole_numbers(draw: st.DrawFn) -> tuple[Parameter, int, int]:
    log = draw(st.booleans())
    low = draw(st.integers(1 if log else -1000, 100000))
    high = low + draw(st.integers(0, LARGEST_BOUND - low) | st.integers(0, 50))
    return numeric("int", log=log, step=draw(st.none() | st.integers(1, 5000))), low, high


@st.composite
def fractions(draw: st.DrawFn) -> tuple[Parameter, float, float]:
    log = draw(st.booleans())
    low = draw(st.floats(1e-6 if log else -1e6, 1e6))
    high = low + draw(st.floats(1e-3, 1e6))
    return numeric("float", log=log), low, high


@given(whole_numbers(), positions)
def test_a_whole_number_survives_the_way_to_its_position_and_back(ranged, position):
    parameter, low, high = ranged
    value = decode_position(position, parameter, low, high)

    assert isinstance(value, int)
    assert low <= value <= high
    assert is_on_grid(value, low, parameter)
    assert decode_position(encode_position(value, parameter, low, high), parameter, low, high) == value


@given(whole_numbers(), st.data())
def test_every_value_on_the_grid_has_a_position(ranged, data):
    parameter, low, high = ranged
    step = parameter.step or 1
    value = grid_value(parameter, low, high, data.draw(st.integers(0, count_steps(low, high, step))))

    position = encode_position(value, parameter, low, high)

    assert 0 <= position <= 1
    assert decode_position(position, parameter, low, high) == value


@given(fractions(), positions)
@example((numeric("float", log=True), 1e-6, 1e6), 1.0)
@example((numeric("float"), 1 / 3, 2 / 3), 0.0)
def test_a_fraction_survives_the_way_to_its_position_and_back(ranged, position):
    parameter, low, high = ranged
    value = decode_position(position, parameter, low, high)

    assert low <= value <= high
    assert decode_position(encode_position(value, parameter, low, high), parameter, low, high) == value


@given(st.sampled_from([0.1, 0.125, 1 / 3, 2.5]), st.floats(-3000, 3000), st.floats(0, 3000), positions)
@example(0.125, 128.414, 1920.0, 1.0)  # their sum is a hair below the last value on the grid
@example(0.1, 1 / 3, 1.0, 0.0)
def test_a_fraction_on_a_grid_stays_on_it(step, low, width, position):
    parameter, high = numeric("float", step=step), low + width
    value = decode_position(position, parameter, low, high)

    assert low <= value <= high
    assert is_on_grid(value, low, parameter)
    assert decode_position(encode_position(value, parameter, low, high), parameter, low, high) == value
    assert fit_number(value, parameter, low, high) == value


@given(whole_numbers() | fractions(), positions, positions)
def test_a_higher_position_never_gives_a_lower_value(ranged, one, two):
    parameter, low, high = ranged
    first, second = sorted([one, two])

    assert decode_position(first, parameter, low, high) <= decode_position(second, parameter, low, high)


@given(fractions(), positions)
def test_positions_are_uniform_in_the_logarithm(ranged, position):
    parameter, low, high = ranged
    assume(parameter.log and high > low * 1.01)
    value = decode_position(position, parameter, low, high)
    share = math.log(value / low) / math.log(high / low)

    # A float keeps six digits, which moves its logarithm by less than 1e-5.
    assert abs(share - position) <= 1e-5 / math.log(high / low)


@given(st.integers(1, 1000), st.integers(1, 10**6), positions)
def test_whole_numbers_are_uniform_in_the_logarithm_but_for_rounding(low, width, position):
    parameter, high = numeric("int", log=True), low + width
    value = decode_position(position, parameter, low, high)
    trial, end = math.log(low - 0.5), math.log(high + 0.5)
    exact = math.exp(trial + (end - trial) * position)

    assert abs(value - exact) <= 0.5 + 1e-6 * exact


@given(whole_numbers() | fractions(), st.floats(-1e7, 1e7))
def test_a_value_is_pulled_to_the_nearest_one_in_range(ranged, value):
    parameter, low, high = ranged
    fitted = fit_number(value, parameter, low, high)

    assert low <= fitted <= high
    assert is_on_grid(fitted, low, parameter)
    assert fit_number(fitted, parameter, low, high) == fitted


@given(st.floats(-1e15, 1e15))
def test_keeping_few_digits_is_done_once(value):
    parameter = numeric("float")
    kept = round_number(value, parameter)

    assert round_number(kept, parameter) == kept
    assert math.isclose(kept, value, rel_tol=1e-5, abs_tol=1e-300)
