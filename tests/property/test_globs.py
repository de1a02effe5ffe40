"""What a server's Include means is what glob(3) gives."""

import tempfile
from glob import glob
from pathlib import Path, PurePosixPath

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.more import examples
from tuner.kit.config_files import matching

NAMES = st.lists(st.text("ab.", min_size=1, max_size=3).filter(lambda name: set(name) != {"."}), max_size=6)
PATTERNS = st.text("ab.*?", min_size=1, max_size=4).filter(lambda name: name not in {".", ".."})


@settings(max_examples=examples(60), deadline=None)
@given(folders=NAMES, names=NAMES, folder_pattern=PATTERNS, pattern=PATTERNS)
def test_a_pattern_gives_what_the_library_gives(folders, names, folder_pattern, pattern):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        paths = {root / f"d{folder}" / name for folder in folders for name in names}
        for path in paths:
            path.parent.mkdir(exist_ok=True)
            path.touch()
        wanted = root / f"d{folder_pattern}" / pattern

        found = matching(map(PurePosixPath, paths), PurePosixPath(wanted))

        expected = map(PurePosixPath, glob(str(wanted)))  # noqa: PTH207 - a Path's takes leading dots
        assert found == sorted(expected, key=lambda path: path.parts)
