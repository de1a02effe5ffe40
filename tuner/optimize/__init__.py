"""Optimizers: what was observed in, the next point out."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.optimize.sampler import NoisyGPSampler

__all__ = ["NoisyGPSampler"]


def __getattr__(name: str) -> object:
    """Load the sampler when it is asked for: its parts of SciPy take 50 MiB."""
    if name == "NoisyGPSampler":
        from tuner.optimize.sampler import NoisyGPSampler

        return NoisyGPSampler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
