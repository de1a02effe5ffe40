"""A worker of a study on PostgreSQL that waits for the turn, as a process of its own that a test can freeze.

Usage: wait_for_turn.py URL STUDY HOST. Prints whether it has the turn once it was given it.
"""

import sys
from dataclasses import replace

from tuner.study.databases.database import StorageLost
from tuner.study.open_storage import open_storage

MOST_OF_A_TURN_S = 1


def main(url: str, study: str, host: str) -> None:
    storage = open_storage(url, study)
    storage.join(host=host, worker=host, patience_s=60)
    crew = replace(storage.crew, most_of_a_turn_s=MOST_OF_A_TURN_S)
    with crew.at_work():
        try:
            crew.require_turn()
        except StorageLost:
            sys.stdout.write("lost\n")
        else:
            sys.stdout.write("has the turn\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
