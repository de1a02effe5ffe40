"""The curve command's options, before anything is measured."""

import pytest

from tuner.cli.curve_command import name_configurations, read_counts
from tuner.errors import UsageError


def test_numbers_stand_between_commas():
    assert read_counts("100, 3000,10") == [100, 3000, 10]


@pytest.mark.parametrize("text", ["", "100,,300", "many", "-5", "1e3", "10.5"])
def test_what_is_no_number_of_connections_is_refused(text):
    with pytest.raises(UsageError, match=r"--connections: .* Write values as in 100,1000,10000"):
        read_counts(text)


def test_a_file_is_known_by_its_name_without_the_folder(tmp_path):
    path = tmp_path / "article.yaml"
    path.write_text("worker_processes: 4\n")

    assert name_configurations(["default", str(path)]) == {
        "default": "default", "article": {"worker_processes": "4"}
    }  # fmt: skip


def test_the_same_configuration_twice_is_refused():
    with pytest.raises(UsageError, match="'default' is given twice"):
        name_configurations(["default", "default"])
