"""Optimizers by the name that a study file gives."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tuner.errors import UsageError

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from tuner.optimize.optimizer import Earlier, Optimizer, Point

DEFAULT_OPTIMIZER = "noisy-gp"
ONE_OBJECTIVE = frozenset({"cmaes", "optuna.samplers:CmaEsSampler"})
"""Those that cannot weigh goodput against a cost."""
WITHOUT_MEMORY = frozenset(f"optuna.samplers:{name}" for name in ("GPSampler", "RandomSampler", "TPESampler"))
"""Samplers that look at nothing but the trials' values; any other one may follow what it suggested itself."""


SAMPLERS: Mapping[str, tuple[str, str, Mapping[str, object]]] = {
    "gp": ("optuna.samplers:GPSampler", "torch", {}),
    "random": ("optuna.samplers:RandomSampler", "", {}),
    "qmc": ("optuna.samplers:QMCSampler", "", {"scramble": True, "warn_independent_sampling": False}),
    "cmaes": ("optuna.samplers:CmaEsSampler", "cmaes", {"warn_independent_sampling": False}),
}
"""Import path, the package that it needs besides, and options."""
OPTIMIZERS = (DEFAULT_OPTIMIZER, "tpe", *SAMPLERS)


def make_optimizer(name: str, default: "Point", *, earlier: "Sequence[Earlier]" = ()) -> "Optimizer":
    """Make an optimizer.

    Args:
        name: one of OPTIMIZERS, or the import path `module:Class` of an Optuna sampler.
        default: the point of the default configuration.
        earlier: earlier studies. The best of each is tried before all suggestions, and an optimizer that can
            mixes what was good with its own; each as long as its ranking is borne out.

    Raises:
        UsageError: there is no such optimizer, a package that it needs is missing, or it cannot be made.
    """
    from tuner.optimize.optuna_samplers import AskedAgain, Foreign, NoisyGp, Tpe, TriesFirst

    made: Optimizer
    if name == DEFAULT_OPTIMIZER:
        made = NoisyGp(default, earlier)
    elif name == "tpe":
        made = Tpe(default)
    elif name in SAMPLERS or ":" in name:
        path, package, options = SAMPLERS.get(name, (name, "", {}))
        if package:
            _need(package, name)
        kind = Foreign if path in WITHOUT_MEMORY else AskedAgain
        made = kind(name, _make_of(path, **options))
    else:
        raise UsageError(
            f"optimizer: there is no optimizer {name!r}. Use one of: {', '.join(OPTIMIZERS)}; or the import "
            "path of an Optuna sampler, module:Class."
        )
    return TriesFirst(made, earlier) if earlier else made


def _make_of(path: str, **options: object) -> "Callable[[int], BaseSampler]":
    """Return what makes a sampler from a seed: its class, by import path, with these options."""
    from optuna.exceptions import ExperimentalWarning
    from optuna.samplers import BaseSampler

    module, _, attribute = path.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # a module of somebody else's may raise anything
        raise UsageError(
            f"optimizer: {path!r} cannot be imported: {type(error).__name__}: {error}. Install the package, "
            "or correct the path module:Class."
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


def need_package_of(path: str) -> None:
    """Raise UsageError where the package of an import path is not installed; nothing of it is run."""
    package = path.partition(":")[0].partition(".")[0]
    if not package or find_spec(package) is None:
        raise UsageError(
            f"optimizer: {path!r}: no Python package {package!r} is installed here. Install the package in "
            "tuner's Python environment, or correct the path module:Class."
        )


def _need(module: str, optimizer: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise UsageError(
            f"optimizer: {optimizer!r} needs the Python package {module}. Install this package in tuner's "
            f"Python environment: pip install {module}."
        ) from error
