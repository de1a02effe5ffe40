"""One trial of a managed run: the host is taken, changed, and given back.

python -m benchmarks.faults.sequences.trial STUDY CHANGES     # CHANGES: values by name, as JSON
"""

import json
import sys
from pathlib import Path

from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.errors import TunerError
from tuner.interrupts import signals_interrupt
from tuner.study import load_study


def main() -> None:
    """Make the trial; end as `tuner run` does."""
    try:
        make(Path(sys.argv[1]), json.loads(sys.argv[2]))
    except KeyboardInterrupt:
        sys.exit(130)
    except TunerError as error:
        print(f"tuner: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def make(study: Path, changes: dict[str, int]) -> None:
    """Take the host, deploy these values, and give it back."""
    settings = load_study(study)
    with signals_interrupt():
        found = find_target(settings, plugins.make_host(settings.target.host))
        with found.target.hold(print), found.target.deploy(found.space.complete(changes)):
            print("deployed", flush=True)


if __name__ == "__main__":
    main()
