import pytest

from tuner.deploy.discovery import read_pid
from tuner.testing.fakes import completed


@pytest.mark.parametrize("printed", ["", "0", "-1", "\u00b2", "\u0661", "1e3", "9" * 5000, "1 2"])
def test_an_id_that_no_kernel_gives_is_no_process(printed: str):
    assert read_pid(completed(stdout=printed.encode())) is None
