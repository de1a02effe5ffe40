"""The studies that come with tuner, by name: experiments of others, to be made again here."""

from collections.abc import Mapping
from pathlib import Path

from tuner.space.problems import problem, quote, suggest
from tuner.study.file import load_study
from tuner.study.settings import Study

FOLDER = Path(__file__).parents[1] / "search_spaces" / "studies"


def named_studies() -> Mapping[str, Path]:
    """Return name → file of every study that comes with tuner, sorted."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def find_named(name: str) -> Path:
    """Return the file of a study that comes with tuner. Raises UsageError for an unknown name."""
    known = named_studies()
    if name not in known:
        remedy = f"{suggest(name, known)} `tuner studies` lists them"
        raise problem("--study", f"there is no study {quote(name)}", remedy)
    return known[name]


def load_named() -> tuple[Study, ...]:
    """Read all studies that come with tuner."""
    return tuple(load_study(path) for path in named_studies().values())
