import inspect

import pytest

from tests.unit.report.test_progress import play
from tuner.cli.printing import make_console, remark, say, show_progress
from tuner.cli.verbosity import Verbosity, raise_verbosity, with_verbosity


@pytest.fixture(autouse=True)
def _usual(monkeypatch):
    """Begin every test with the usual verbosity."""
    for name in ("quiet", "verbose", "debug"):
        monkeypatch.setattr(Verbosity, name, False)


def test_what_was_asked_for_before_the_command_is_not_taken_back_behind_it():
    raise_verbosity(quiet=True, verbose=False, debug=False)
    raise_verbosity(quiet=False, verbose=True, debug=False)

    assert (Verbosity.quiet, Verbosity.verbose, Verbosity.debug) == (True, True, False)


def test_a_command_keeps_its_own_options():
    def greet(name: str, *, loud: bool = False) -> None:
        assert (name, loud) == ("web1", True)
        assert Verbosity.quiet

    command = with_verbosity(greet)

    assert list(inspect.signature(command).parameters) == ["name", "loud", "quiet", "verbose", "debug"]
    command(name="web1", loud=True, quiet=True, verbose=False, debug=False)


def test_quiet_leaves_errors_and_nothing_else(capsys):
    raise_verbosity(quiet=True, verbose=False, debug=False)
    with show_progress() as progress:
        play(progress)
    remark("about 5 min")
    make_console(stderr=True).print("drawn")
    assert capsys.readouterr().err == ""

    say("tuner: wrong")

    assert capsys.readouterr().err == "tuner: wrong\n"


def test_usually_there_is_a_line_for_each_trial(capsys):
    with show_progress() as progress:
        play(progress)

    said = capsys.readouterr().err
    assert "#5 search" in said
    assert "window 1:" not in said


def test_verbose_shows_windows_and_whole_reasons(capsys):
    raise_verbosity(quiet=False, verbose=True, debug=False)
    with show_progress() as progress:
        play(progress)

    said = capsys.readouterr().err
    assert "    window 1: " in said
    assert " requests/s, p99 " in said
    assert "    [bold]bad[/bold]\n" in said
