"""Runs the contracts of a registered server here: python -m tuner.testing NAME [PYTEST OPTION…]."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tuner.errors import TunerError
from tuner.plugins import make_server

SUITE = "from tuner.testing.servers import contract_of\n\nTestContract = contract_of({name!r})\n"


def main(arguments: Sequence[str]) -> int:
    """Return pytest's exit code."""
    if not arguments:
        sys.exit(
            "usage: python -m tuner.testing NAME [PYTEST OPTION…], as in: python -m tuner.testing nginx -x"
        )
    name, *options = arguments
    try:
        make_server(name)
    except TunerError as error:
        sys.exit(str(error))
    with tempfile.TemporaryDirectory(prefix="tuner-testing-") as folder:
        suite = Path(folder, "test_contract.py")
        suite.write_text(SUITE.format(name=name))
        return pytest.main([str(suite), "--rootdir", folder, "-p", "no:cacheprovider", *options])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
