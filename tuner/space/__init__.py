"""The search-space language: what may be tuned, within which bounds, under which conditions."""

from tuner.space.describing import describe_dead, describe_presets, describe_space
from tuner.space.loading import load_space
from tuner.space.parameters import Constraint, Derived, Dimension, Parameter, Preset, SpaceFacts
from tuner.space.sources import available_spaces
from tuner.space.space import UNSET, Space

__all__ = [
    "UNSET",
    "Constraint",
    "Derived",
    "Dimension",
    "Parameter",
    "Preset",
    "Space",
    "SpaceFacts",
    "available_spaces",
    "describe_dead",
    "describe_presets",
    "describe_space",
    "load_space",
]
