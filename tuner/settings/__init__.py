"""The study file as frozen objects."""

from tuner.settings.reading import load_study, load_values
from tuner.settings.study import LoadSettings, Study, Target

__all__ = ["LoadSettings", "Study", "Target", "load_study", "load_values"]
