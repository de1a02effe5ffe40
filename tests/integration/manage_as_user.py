"""A short managed session on this machine, as whoever runs it: changed, reloaded, looked at, given back.

Run as `python manage_as_user.py STUDY CHANGES…`, each a literal of values by name.
"""

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.restore.recovery import describe_use
from tuner.study import load_study


def main(study: Path, changes: list[dict[str, int]]) -> None:
    """Do what a run does to its target."""
    settings = load_study(study)
    found = find_target(settings, plugins.make_host(settings.target.host))
    target, space = found.target, found.space
    target.as_found()
    with target.hold(lambda _: None):
        for each in changes:
            with target.deploy(space.complete(each)) as deployed:
                deployed.check_alive()
                print(sorted(deployed.effective.items()))  # noqa: T201 - for whom it fails
        for server in target.servers:
            print(server.quote_log(target.host))  # noqa: T201 - the test reads it
    assert describe_use(target.host) == ()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [ast.literal_eval(each) for each in sys.argv[2:]])
