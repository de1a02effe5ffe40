"""Tables of an earlier Optuna in a real PostgreSQL: brought up to date when nobody else uses them."""

import alembic.command
import pytest
from sqlalchemy import text

from tests.testbed.database import open_postgres
from tests.unit.simulation import TUNED, space_of
from tuner.errors import TargetError
from tuner.optimize.replay import distributions
from tuner.records import Role, State
from tuner.study.open_storage import open_storage
from tuner.study.storage import Opening, Storage

EARLIER = "v3.0.0.d"
"""Of Optuna 3.0 and 3.1. From what is older Optuna knows no way back, so it cannot be made here."""


@pytest.fixture(scope="module")
def postgres():
    with open_postgres() as server:
        yield server


def make_study(url: str, name: str) -> Storage:
    """Make a study with one start of a configuration."""
    storage = open_storage(url, name)
    space = space_of(*TUNED)
    default = space.default()
    opening = Opening(role=Role.SEARCH, config=default, point=space.encode(default))
    storage.join(host="web0", worker="one", patience_s=60)
    with storage.crew.at_work():
        start = storage.begin(opening, distributions=distributions(space.dimensions), session="first")
        storage.settle(start, least_windows=1, constraints=(), controls=())
    return storage


def leave(storage: Storage) -> None:
    storage._storage.remove_session()
    storage._storage.engine.dispose()


def go_back(storage: Storage) -> None:
    """Make the tables what an earlier Optuna made."""
    config = storage._storage._version_manager._create_alembic_config()
    with storage._storage.engine.begin() as connection:
        # Only tables that were brought up to date before have it by this name.
        connection.execute(text("CREATE INDEX IF NOT EXISTS trials_study_id_key ON trials (study_id)"))
    leave(storage)
    alembic.command.downgrade(config, EARLIER)


def test_tables_of_an_earlier_optuna_are_brought_up_to_date(postgres):
    storage = make_study(postgres.url, "earlier")
    before = storage.starts()
    assert [start.state for start in before] == [State.INVALID]
    go_back(storage)

    again = open_storage(postgres.url, "earlier")
    assert again.starts() == before
    assert again._study.trials[0].params == storage._study.trials[0].params
    assert again._storage.get_current_version() == again._storage.get_head_version()
    leave(storage)
    leave(again)


def test_they_stay_as_they_are_while_others_use_them(postgres):
    storage = make_study(postgres.url, "used")
    go_back(storage)
    with storage._storage.engine.connect():
        with pytest.raises(TargetError, match=r"1 other connection to this database now\."):
            open_storage(postgres.url, "used")
        assert storage._storage.get_current_version() == EARLIER
    leave(storage)
    leave(open_storage(postgres.url, "used"))
