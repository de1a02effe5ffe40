"""A controller of its own, to be killed: changes the installed services of a study's target, and stays.

Run as `python hold_target.py STUDY CHANGES`, these a literal of values by name.
"""

import ast
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.study import load_study


def main(study: Path, changes: dict[str, int]) -> None:
    """Hold the target until killed."""
    settings = load_study(study)
    found = find_target(settings, plugins.make_host(settings.target.host))
    target, space = found.target, found.space
    with target.hold(lambda _: None), target.deploy(space.complete(changes)):
        print("holding", flush=True)  # noqa: T201 - the test waits for it
        time.sleep(60)


if __name__ == "__main__":
    main(Path(sys.argv[1]), ast.literal_eval(sys.argv[2]))
