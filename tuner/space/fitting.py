"""Fits configurations of other studies into a space."""

from collections.abc import Mapping

from tuner.ports import Scalar
from tuner.space.parameters import Parameter
from tuner.space.problems import Refused
from tuner.space.space import Space
from tuner.space.values import accept


def fit_into(space: Space, config: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the configuration of a space that is nearest to one of another study."""
    known = {parameter.name: parameter for parameter in space.parameters}
    return space.complete(
        {name: value for name, value in config.items() if name in known and _is_known(known[name], value)},
        fit=True,
    )


def _is_known(parameter: Parameter, value: Scalar) -> bool:
    """Return whether a parameter has such a value, be it out of its range."""
    try:
        accept(parameter, value)
    except Refused:
        return False
    return True
