"""From the sources of a space and the facts of a host to the space."""

from collections.abc import Sequence
from pathlib import Path

from tuner.space.building import build
from tuner.space.merging import merge
from tuner.space.parameters import SpaceFacts
from tuner.space.sources import Source, read_sources
from tuner.space.space import Space


def load_space(sources: Sequence[Source], *, facts: SpaceFacts, base: Path) -> Space:
    """Load, refine and check a space.

    Args:
        sources: built-in names, paths (relative to `base`), or mappings of the same form as a file:
            `{only: […]}`, `{without: […]}`, `{set: {…}}`, `{allow: [semantic, risky]}`, `{parameters: {…}}`;
            as `Document.below` they keep the lines of the study file. Later ones refine earlier ones.
        facts: what expressions, versions and `exists` are judged by.
        base: folder of the study file.

    Raises:
        UsageError: the first fault, with file, line, value and remedy.
    """
    return build(merge(read_sources(sources, base)), facts)
