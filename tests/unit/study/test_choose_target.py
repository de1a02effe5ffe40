"""The host of one worker, in the place of the study file's own."""

import pytest

from tests.unit.simulation import write_study
from tuner.errors import UsageError
from tuner.study.file import choose_target


def test_a_worker_measures_on_the_host_that_it_is_given(tmp_path):
    settings = write_study(tmp_path, more="target: {watchdog_s: 30}\n")
    chosen = choose_target(settings, "ssh://root@web3:2222")
    assert (chosen.target.host, chosen.target.watchdog_s) == ("ssh://root@web3:2222", 30)


@pytest.mark.parametrize("host", ["web3", "ssh://", "ssh://root@web3/x?y", "", "local "])
def test_what_is_no_host_is_refused(tmp_path, host):
    with pytest.raises(UsageError, match="is no host"):
        choose_target(write_study(tmp_path), host)
