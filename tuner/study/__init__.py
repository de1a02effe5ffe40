"""The study file as frozen objects."""

from tuner.study.file import load_study, load_values
from tuner.study.settings import LoadSettings, Study, TargetSettings

__all__ = ["LoadSettings", "Study", "TargetSettings", "load_study", "load_values"]
