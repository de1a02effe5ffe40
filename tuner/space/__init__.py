"""The search-space language: what may be tuned, within which bounds, under which conditions.

A space is a YAML file; schema.py explains every key, and search_spaces/space.schema.json gives editors
completion. Bounds, defaults, conditions and derived settings are expressions over facts of the host and over
other parameters, whose names stand with `_` for `.`, `-` and `[` (`tcp_wmem[1]` is tcp_wmem_1):

    parameters:
      processes: {kind: int, low: 1, high: 4 * cores, scale: log, default: cores}
      started: {kind: int, low: 1, high: processes, default: "min(2, processes)"}
      requests: {kind: int, low: 10, high: 100000, special: {unlimited: 0}, default: 100, when: keepalive}
      keepalive: {kind: bool, default: on}
    derived:
      workers: {value: processes * 25}
    capacity:
      requests: {value: workers, counts: requests at once}

A configuration that has less capacity than the default is refused, unless the study says `allow: [capacity]`.
Bounds may be built by what is asked: `low: ceil(least('requests') / 25)`; least is 0 where less is allowed.

`load_space` makes a Space of it for one host. What the host decides is settled then; what is left is a flat
set of dimensions, each point of which `Space.decode` turns into a configuration, valid by construction.
"""

from tuner.space.building import load_space
from tuner.space.describing import (
    describe_dead,
    describe_presets,
    describe_searched,
    describe_space,
    describe_spaces,
)
from tuner.space.expressions import possible_texts
from tuner.space.parameters import (
    SAFE,
    Derived,
    Dimension,
    Hint,
    Parameter,
    ParameterConstraint,
    Preset,
    SpaceFacts,
    facts_from_json,
    facts_to_json,
)
from tuner.space.problems import Refused
from tuner.space.sources import available_spaces, is_path, suggest_space
from tuner.space.space import UNSET, Space
from tuner.space.values import accept

__all__ = [
    "SAFE",
    "UNSET",
    "Derived",
    "Dimension",
    "Hint",
    "Parameter",
    "ParameterConstraint",
    "Preset",
    "Refused",
    "Space",
    "SpaceFacts",
    "accept",
    "available_spaces",
    "describe_dead",
    "describe_presets",
    "describe_searched",
    "describe_space",
    "describe_spaces",
    "facts_from_json",
    "facts_to_json",
    "is_path",
    "load_space",
    "possible_texts",
    "suggest_space",
]  # fmt: skip
