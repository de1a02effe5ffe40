"""A worker of a study on PostgreSQL that waits for the turn, as a process of its own that a test can freeze.

Usage: wait_for_turn.py URL STUDY HOST. Ends well when it has had the turn.
"""

import sys
from dataclasses import replace

from tuner.study.open_storage import open_storage

MOST_OF_A_TURN_S = 1


def main(url: str, study: str, host: str) -> None:
    storage = open_storage(url, study)
    storage.join(host=host, worker=host, patience_s=60)
    crew = replace(storage.crew, most_of_a_turn_s=MOST_OF_A_TURN_S)
    with crew.at_work():
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
