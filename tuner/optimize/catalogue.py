"""Optimizers by the name that a study file gives."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tuner.errors import UsageError

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from tuner.optimize.optimizer import Optimizer, Point

DEFAULT_OPTIMIZER = "noisy-gp"
ONE_OBJECTIVE = frozenset({"cmaes", "optuna.samplers:CmaEsSampler"})
"""Those that cannot weigh goodput against a cost."""
WITHOUT_MEMORY = frozenset(f"optuna.samplers:{name}" for name in ("GPSampler", "RandomSampler", "TPESampler"))
"""Samplers that look at nothing but the trials' values; any other one may follow what it suggested itself."""


def _noisy_gp(default: "Point", good: "Sequence[Point]") -> "Optimizer":
    from tuner.optimize.noisy_gp import NoisyGp

    return NoisyGp(default, good)


def _tpe(default: "Point", _good: "Sequence[Point]") -> "Optimizer":
    from tuner.optimize.tpe import Tpe

    return Tpe(default)


def _gp(_default: "Point", _good: "Sequence[Point]") -> "Optimizer":
    from tuner.optimize.foreign import Foreign

    _need("torch", "gp")
    return Foreign("gp", _make_of("optuna.samplers:GPSampler"))


def _random(_default: "Point", _good: "Sequence[Point]") -> "Optimizer":
    from tuner.optimize.foreign import Foreign

    return Foreign("random", _make_of("optuna.samplers:RandomSampler"))


def _qmc(_default: "Point", _good: "Sequence[Point]") -> "Optimizer":
    from tuner.optimize.foreign import AskedAgain

    return AskedAgain(
        "qmc", _make_of("optuna.samplers:QMCSampler", scramble=True, warn_independent_sampling=False)
    )


def _cmaes(_default: "Point", _good: "Sequence[Point]") -> "Optimizer":
    from tuner.optimize.foreign import AskedAgain

    _need("cmaes", "cmaes")
    return AskedAgain("cmaes", _make_of("optuna.samplers:CmaEsSampler", warn_independent_sampling=False))


OPTIMIZERS: Mapping[str, "Callable[[Point, Sequence[Point]], Optimizer]"] = MappingProxyType(
    {
        "noisy-gp": _noisy_gp,
        "tpe": _tpe,
        "gp": _gp,
        "random": _random,
        "qmc": _qmc,
        "cmaes": _cmaes,
    }
)


def make_optimizer(
    name: str, default: "Point", *, first: "Sequence[Point]" = (), good: "Sequence[Point]" = ()
) -> "Optimizer":
    """Make an optimizer.

    Args:
        name: one of OPTIMIZERS, or the import path `module:Class` of an Optuna sampler.
        default: the point of the default configuration.
        first: points to be tried before all suggestions.
        good: points that were good in earlier studies, for an optimizer that can mix them with its own.

    Raises:
        UsageError: there is no such optimizer, a package that it needs is missing, or it cannot be made.
    """
    from tuner.optimize.foreign import AskedAgain, Foreign, TriesFirst

    made: Optimizer
    if name in OPTIMIZERS:
        made = OPTIMIZERS[name](default, good)
    elif ":" in name:
        kind = Foreign if name in WITHOUT_MEMORY else AskedAgain
        made = kind(name, _make_of(name))
    else:
        raise UsageError(
            f"optimizer: there is no {name!r}. Use one of: {', '.join(OPTIMIZERS)}; "
            "or the import path of an Optuna sampler, module:Class."
        )
    return TriesFirst(made, first) if first else made


def _make_of(path: str, **options: object) -> "Callable[[int], BaseSampler]":
    """Find a sampler's class by its import path; it is made with these options."""
    from optuna.exceptions import ExperimentalWarning
    from optuna.samplers import BaseSampler

    module, _, attribute = path.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # a module of somebody else's may raise anything
        raise UsageError(
            f"optimizer: {path!r} cannot be imported: {type(error).__name__}: {error}. "
            "Install it, or correct the path module:Class."
        ) from error
    if not (inspect.isclass(found) and issubclass(found, BaseSampler)):
        raise UsageError(
            f"optimizer: {path!r} is no Optuna sampler. Name a subclass of optuna.samplers.BaseSampler."
        )
    takes_seed = "seed" in inspect.signature(found).parameters

    def make(seed: int) -> BaseSampler:
        arguments: dict[str, Any] = {**options, "seed": seed} if takes_seed else dict(options)
        with warnings.catch_warnings():
            # That one of its samplers may change in a later version is nothing to tell who chose it.
            warnings.simplefilter("ignore", ExperimentalWarning)
            return found(**arguments)

    return make


def _need(module: str, optimizer: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise UsageError(
            f"optimizer: {optimizer!r} needs the Python package {module}. "
            f"Install it beside tuner: pip install {module}."
        ) from error
