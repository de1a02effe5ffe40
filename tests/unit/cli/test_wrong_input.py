"""Wrong words on the command line are refused in the form of every other message."""

import pytest

from tests.unit.cli.test_cli import TUNER, call
from tuner.cli import app
from tuner.cli.arguments import read_minutes
from tuner.cli.wrong_input import WrongInput, explain_input
from tuner.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "run study.yaml --preset fast",
            "--preset: 'fast' is not one of 'quick', 'standard', 'thorough'. See: tuner run -h",
        ),
        ("run study.yaml --trials many", "--trials: 'many' is not a whole number. See: tuner run -h"),
        ("run study.yaml --trials 3.5", "--trials: '3.5' is not a whole number. See: tuner run -h"),
        ("gate study.yaml", "gate: missing option '--baseline'. See: tuner gate -h"),
        ("compare study.yaml default", "compare: missing argument 'B'. See: tuner compare -h"),
        ("corpus", "corpus: missing argument 'action'. Choose from: add, list. See: tuner corpus -h"),
        ("run study.yaml --quik", "run: no such option: --quik"),
        ("cpmpare", "no such command 'cpmpare'. Did you mean 'compare'? See: tuner -h"),
    ],
)
def test_a_wrong_word_is_named_with_its_place_and_the_help(typed: str, said: str):
    with pytest.raises(WrongInput) as raised:
        app(typed.split(), prog_name="tuner", standalone_mode=False)

    assert str(explain_input(raised.value)).startswith(said)


def test_the_command_says_it_in_one_line():
    ended = call(TUNER, "run", "study.yaml", "--preset", "fast")

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "tuner: --preset: 'fast' is not one of 'quick', 'standard', 'thorough'. See: tuner run -h\n"
    )


def test_the_command_alone_prints_its_help():
    assert "Usage: tuner" in call(TUNER).stderr


@pytest.mark.parametrize(
    ("text", "minutes"), [("3", 3), ("0.5", 0.5), ("3m", 3), ("90s", 1.5), ("1.5h", 90), (" 3 m ", 3)]
)
def test_minutes_are_given_with_or_without_a_unit(text: str, minutes: float):
    assert read_minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "m", "3d", "three", "nan", "-3m", "1e3", "3mm"])
def test_what_is_no_time_is_refused(text: str):
    with pytest.raises(
        UsageError, match=r"--minutes: .* is not a duration\. Write 3 \(minutes\), 90s, 3m or 1h"
    ):
        read_minutes(text)
