"""The study file as frozen objects."""

from tuner.study.file import is_study, load_study, load_values
from tuner.study.schema import TargetSettings
from tuner.study.settings import LoadSettings, Study

__all__ = ["LoadSettings", "Study", "TargetSettings", "is_study", "load_study", "load_values"]
