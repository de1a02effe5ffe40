"""Settles what a sweep measures: the values of its parameter, and the whole configuration at each."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from tuner.campaign.prepare import Setup
from tuner.commands.contests.compare import resolve
from tuner.errors import UsageError
from tuner.ports import Config, Scalar
from tuner.space.grid import GridPoint, choose_values, find_parameter, place_value
from tuner.space.parameters import NOT_ALLOWED
from tuner.space.space import Space
from tuner.space.values import accept_at, find_special
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study import Study
from tuner.study.facts import SweepPlan
from tuner.study.open_storage import is_there

BASES = (DEFAULT_ARM, WINNER_ARM)
MOST_VALUES = 24


def plan_sweep(
    settings: Study,
    setup: Setup,
    parameter: str,
    *,
    values: Sequence[Scalar] | None = None,
    around: str | None = None,
    at: str = DEFAULT_ARM,
) -> SweepPlan:
    """Settle the values and the configuration at each, the value that is there anyway among them.

    Values that are asked for may hold less than the default: to be measured is not to be shipped.

    Raises:
        UsageError: there is no such parameter, base or winner, or a value is out of range or forbidden.
    """
    _refuse_bases(at=at, around=around)
    space, free = setup.space, setup.space.open()
    known = find_parameter(free, parameter)
    if NOT_ALLOWED in known.pinned:
        raise UsageError(
            f"{parameter}: {known.pinned}. Allow this parameter in {settings.path}, or sweep another one."
        )
    bases = {base: resolve(settings, setup, base) for base in BASES if base in {at, around}}
    base = bases[at]
    if parameter not in base:
        condition = known.when.text if known.when else ""
        raise UsageError(
            f"{parameter}: this parameter has no effect at the {at}, because `{condition}` is false there. "
            f"Sweep the parameter at the {_other(at)}, or sweep a parameter that this condition names."
        )
    if values is None:
        wanted = [
            config[parameter] for config in _bases_to_show(settings, setup, base) if parameter in config
        ]
        middle = bases[around].get(parameter) if around else None
        chosen = choose_values(space, base, parameter, with_values=wanted, around=middle)
    else:
        chosen = [accept_at(known, each, parameter) for each in values]
    chosen = list(dict.fromkeys(_order([*chosen, base[parameter]], known.special)))
    if len(chosen) > MOST_VALUES:
        raise UsageError(f"{parameter}: {len(chosen)} values are too many. Give at most {MOST_VALUES}.")
    points = [_place(space, base, parameter, each) for each in chosen]
    if len(points) == 1:
        raise UsageError(
            f"{parameter}: {free.show(parameter, points[0].value)} is already the value at the {at}. Give "
            "another value."
        )
    lacks = {index: "; ".join(free.lacks(point.config)) for index, point in enumerate(points)}
    return SweepPlan(
        parameter=parameter, at=at, values=tuple(point.value for point in points),
        configs=tuple(point.config for point in points),
        control=chosen.index(base[parameter]),
        is_log=known.log and all(_is_positive(each) for each in chosen if _has_place(each, known.special)),
        special=tuple(
            index for index, each in enumerate(chosen)
            if not known.is_numeric or not _has_place(each, known.special)
        ),
        lacks={} if space.allows_less else {index: said for index, said in lacks.items() if said},
    )  # fmt: skip


def _place(space: Space, base: Config, name: str, value: Scalar) -> GridPoint:
    """Return the configuration at a value that holds as much as the default; where there is none, any."""
    try:
        return place_value(space, base, name, value)
    except UsageError:
        return place_value(space.open(), base, name, value)


def _refuse_bases(*, at: str, around: str | None) -> None:
    for option, given in (("--at", at), ("--around", around)):
        if given is not None and given not in BASES:
            raise UsageError(f"{option}: {given!r} is neither default nor winner. Give default or winner.")


def _other(at: str) -> str:
    return next(each for each in BASES if each != at)


def _bases_to_show(settings: Study, setup: Setup, base: Config) -> list[Config]:
    """Return the configurations whose values belong into every grid: base, default and winner if any."""
    found = [base, setup.space.default()]
    if is_there(settings.storage_url):
        with suppress(UsageError):  # there may be none yet
            found.append(resolve(settings, setup, WINNER_ARM))
    return found


def _order(values: Sequence[Scalar], special: Mapping[str, Scalar]) -> list[Scalar]:
    """Return numbers in order and then special values; choices as they come."""
    numbers = [each for each in values if _has_place(each, special) and not isinstance(each, bool)]
    rest = [each for each in values if not any(each is number for number in numbers)]
    return [*sorted(numbers, key=float), *rest]


def _has_place(value: Scalar, special: Mapping[str, Scalar]) -> bool:
    """Return whether a value lies on a scale."""
    return not isinstance(value, str) and find_special(special, value) is None


def _is_positive(value: Scalar) -> bool:
    return not isinstance(value, str) and value > 0
