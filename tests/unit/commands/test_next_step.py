"""Of every kind of result, the next command fits it, and is one that the command line takes."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest
import typer

from tests.unit.commands.test_page import finished, settings
from tuner.cli import app
from tuner.cli.init_command import describe_first_run
from tuner.cli.study_commands import refuse_unmeasured, show
from tuner.commands.page import list_commands
from tuner.commands.session import Reading, read
from tuner.errors import UsageError
from tuner.report.summary import NO_CANDIDATE, Found, Summary
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.paired_gain import Gain, judge_pairs, pairs_to_decide
from tuner.study import Study, load_study
from tuner.study.facts import TOO_NOISY

__all__ = ["finished", "settings"]
HOSTILE = "a b $(touch x) 'q' \"p\" `id` -n.yaml"
UNPROVEN = judge_pairs([(0.0, 0.0), (0.0, 0.113), (0.0, -0.03), (0.0, 0.06)])
NEAR_ONE = judge_pairs([(0.0, 0.001), (0.0, 0.02), (0.0, -0.02), (0.0, 0.001)])
SLOWER = judge_pairs([(0.0, -0.1), (0.0, -0.11), (0.0, -0.1), (0.0, -0.12)])
FASTER = judge_pairs([(0.0, 0.2), (0.0, 0.21), (0.0, 0.2), (0.0, 0.19)])
AGAIN, WIDER = "compare STUDY default candidate", "spaces --study STUDY"


def put(gain: Gain, preset: str = "standard") -> Callable[[Summary], Summary]:
    return lambda summary: replace(summary, gain=gain, preset=preset)


def find(reason: str, stop_reason: str = "") -> Callable[[Summary], Summary]:
    def change(summary: Summary) -> Summary:
        assert summary.winner is not None
        estimate = Speedup(log_ratio=0.3, variance=0.01)
        found = Found(config=summary.winner.config, speedup=estimate, reason=reason)
        return replace(summary, winner=None, gain=None, found=found, stop_reason=stop_reason)

    return change


def stop(state: str) -> Callable[[Summary], Summary]:
    return lambda summary: replace(summary, winner=None, gain=None, state=state)


KINDS: dict[str, tuple[Callable[[Summary], Summary], str]] = {
    "shipped": (lambda summary: summary, "export STUDY --format shell -o out"),
    "stopped": (stop("stopped"), "run STUDY"),
    "running": (stop("running"), ""),
    "too noisy": (find("the host was too noisy to confirm it", TOO_NOISY), "run STUDY"),
    "rejected for an outage": (find("not confirmed: with 60 slow clients it fails"), AGAIN),
    "rejected for failures": (put(replace(FASTER, verdict="infeasible")), AGAIN),
    "not shown to keep a constraint": (put(replace(FASTER, verdict="not proven")), AGAIN),
    "not proven": (put(UNPROVEN), f"{AGAIN} --pairs {pairs_to_decide(UNPROVEN)}"),
    "not proven, in short trials": (put(NEAR_ONE, "quick"), f"{AGAIN} --preset standard"),
    "not proven, near 1": (put(NEAR_ONE), WIDER),
    "slower": (put(SLOWER), WIDER),
    "overfitted": (put(replace(SLOWER, verdict="overfitted")), WIDER),
    NO_CANDIDATE: (stop("finished"), WIDER),
}


def parse(command: str) -> None:
    """Let the command line read a command, without running it. Raises click's errors."""
    program, name, *words = shlex.split(command)
    group = typer.main.get_command(app)
    assert program == "tuner"
    assert isinstance(group, click.Group) or hasattr(group, "get_command")
    context = group.make_context("tuner", [name, *words], resilient_parsing=False)
    found = group.get_command(context, name)  # type: ignore[attr-defined]
    assert found is not None
    found.make_context(name, words)


@pytest.mark.parametrize(("change", "said"), KINDS.values(), ids=KINDS)
def test_the_next_command_fits_the_result(
    change: Callable[[Summary], Summary], said: str, settings: Study
) -> None:
    reading = read(settings)
    reading = replace(reading, summary=change(reading.summary))

    told = list_commands(reading)

    own = [command for _, command in told if command.startswith("tuner ")]
    assert own[:1] == ([f"tuner {said}".replace("STUDY", str(settings.path))] if said else [])
    for command in own:
        parse(command)


def test_of_a_winner_with_less_capacity_the_effects_are_shown(
    settings: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = read(settings)
    monkeypatch.setattr(Summary, "is_held_back", True)

    assert [command for _, command in list_commands(reading)] == [f"tuner explain {settings.path}"]


def test_an_edited_study_is_not_resumed(settings: Study) -> None:
    reading = read(settings)
    stopped = replace(reading, summary=stop("stopped")(reading.summary), changed="content was edited")

    assert list_commands(stopped) == []


def _hostile(settings: Study) -> Study:
    path = settings.path.rename(settings.path.with_name(HOSTILE))
    settings.folder.rename(path.with_suffix(".study"))
    return load_study(path)


def test_a_hostile_name_is_quoted_in_every_command(
    settings: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = _hostile(settings)
    reading: Reading = read(hostile)
    texts = [
        command
        for change, _ in KINDS.values()
        for _, command in list_commands(replace(reading, summary=change(reading.summary)))
    ]
    show(hostile.path)
    texts += [line for line in capsys.readouterr().err.splitlines() if "tuner " in line]
    with pytest.raises(UsageError) as unmeasured:
        refuse_unmeasured(hostile.path, replace(stop("stopped")(reading.summary), trials=()))
    texts += [str(unmeasured.value), describe_first_run(hostile.path).partition(" (")[0]]
    with pytest.raises(UsageError) as missing:
        load_study(tmp_path / HOSTILE / "none.yaml")
    assert shlex.quote(str(tmp_path / HOSTILE / "none.yaml")) in str(missing.value)

    assert len(texts) > len(KINDS)
    names = (str(hostile.path), f"{hostile.folder}/exports/*", f"{hostile.folder}/exports/candidate/*")
    for text in texts:
        words = shlex.split(text[max(0, text.rfind("tuner ")) :])
        assert {*names} & {*words} or text.startswith("sh out/"), text
