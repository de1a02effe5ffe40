"""Puts a token into a document root of this machine, and waits where the load host would ask for it.

Run as `python hold_token.py DOCUMENT_ROOT`, to be killed.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tuner.adapters.hosts.local import LocalHost
from tuner.deploy.load_target import check_load_target
from tuner.hosts.url import parse_url
from tuner.ports import Completed


class Waiting(LocalHost):
    """A load host whose curl takes its time."""

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if argv[0] == "curl":
            print("holding", flush=True)  # noqa: T201 - the test waits for it
            time.sleep(60)
        return super().run(argv, **options)


if __name__ == "__main__":
    check_load_target(
        parse_url("http://balancer.invalid/"),
        LocalHost(),
        {"gen": Waiting()},
        token_directory=PurePosixPath(sys.argv[1]),
    )
