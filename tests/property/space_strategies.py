"""Random spaces and random points in them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tuner.ports import Scalar
from tuner.space import Dimension, Space, SpaceFacts, load_space

HOST = {"cores": 4, "memory_mib": 4096, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096}


def load(*sources: object, **facts: object) -> Space:
    """Load with facts of a usual host."""
    return load_space(
        sources, facts=SpaceFacts(names=HOST | facts, sandbox=False, loopback=False), base=Path("/")
    )


def coordinate(dimension: Dimension) -> st.SearchStrategy[Scalar]:
    """Any value within a dimension, its ends often."""
    if dimension.kind == "categorical":
        return st.sampled_from(dimension.choices)
    if dimension.kind == "int":
        step = int(dimension.step or 1)
        last = (int(dimension.high) - int(dimension.low)) // step
        return st.integers(0, last).map(lambda index: int(dimension.low) + step * index)
    inside = st.floats(dimension.low, dimension.high, allow_nan=False)
    return st.sampled_from([dimension.low, dimension.high]) | inside


def points(space: Space) -> st.SearchStrategy[dict[str, Scalar]]:
    """Any point, whole or in part."""
    coordinates = {dimension.name: coordinate(dimension) for dimension in space.dimensions}
    return st.fixed_dictionaries(coordinates) | st.fixed_dictionaries({}, optional=coordinates)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Any space whose parameters depend on earlier ones by bounds, conditions and defaults."""
    parameters: dict[str, dict[str, Any]] = {}
    switches: list[str] = []
    numbers: list[str] = []
    for index in range(draw(st.integers(1, 8))):
        name = f"p{index}"
        kind = draw(st.sampled_from(["int", "float", "bool", "categorical"]))
        if kind == "bool":
            entry: dict[str, Any] = {"kind": kind, "default": draw(st.booleans())}
        elif kind == "categorical":
            choices = draw(
                st.lists(st.sampled_from(["on", "off", "auto", "64", "a b"]), min_size=1, unique=True)
            )
            entry = {"kind": kind, "choices": choices, "default": draw(st.sampled_from(choices))}
        else:
            entry = draw(_numeric(kind, numbers))
        if switches and draw(st.booleans()):
            entry["when"] = draw(st.sampled_from(switches)) + draw(st.sampled_from(["", " or cores > 8"]))
        elif kind == "bool":
            switches.append(name)
        elif kind in {"int", "float"} and "special" not in entry:
            numbers.append(name)
        entry["risk"] = draw(st.sampled_from(["safe", "safe", "safe", "semantic"]))
        parameters[name] = entry
    derived = {}
    if numbers:
        derived["d"] = {
            "value": f"1 + 2 * {draw(st.sampled_from(numbers))}",
            "kind": draw(st.sampled_from(["int", "float"])),
        }
    return load({"space": "any", "server": "demo", "parameters": parameters, "derived": derived})


@st.composite
def _numeric(draw: st.DrawFn, kind: str, numbers: Sequence[str]) -> dict[str, Any]:
    low = (
        draw(st.integers(0, 1000))
        if kind == "int"
        else draw(st.floats(0, 1000).map(lambda value: round(value, 3)))
    )
    width = draw(st.integers(0, 10**6))
    log = low > 0 and draw(st.booleans())
    entry: dict[str, Any] = {"kind": kind, "low": low, "high": low + width, "default": low}
    if log:
        entry["scale"] = "log"
    if numbers and draw(st.booleans()):
        other = draw(st.sampled_from(numbers))
        entry["high"] = f"{low} + {other} * {draw(st.integers(1, 9))}"
    if numbers and draw(st.booleans()):
        other = draw(st.sampled_from(numbers))
        entry["low"] = entry["default"] = f"min({low}, {low} + {other})"
    if draw(st.booleans()):
        entry["step"] = (
            draw(st.integers(1, 50)) if kind == "int" else draw(st.sampled_from([0.125, 0.5, 3.0]))
        )
    if draw(st.booleans()):
        entry["special"] = draw(
            st.sampled_from([{"off": -1}, {"auto": "auto"}, {"off": -1, "unlimited": "none"}])
        )
    return entry
