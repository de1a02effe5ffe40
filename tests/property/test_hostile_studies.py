"""`tuner check` of a study that nobody has read does nothing that its author chose freely."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.more import examples
from tests.property.checked_apart import Checked, Checker, open_checker, read_trace
from tests.property.hostile_studies import HostileStudy, hostile_studies

MOST_MIB = 300
PROGRAMS = frozenset(
    {"nginx", "apache2", "h2o", "wrk", "ab", "h2load", "curl", "nsenter", "unshare", "setpriv"}
)


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with open_checker(traced=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def traced() -> Iterator[Checker]:
    with open_checker(traced=True) as opened:
        yield opened


def expect_harmless(checked: Checked) -> None:
    assert checked.code in {0, 2, 3}, checked.said
    assert "Traceback" not in checked.said
    assert checked.code == 0 or "\ntuner: " in f"\n{checked.said}"
    assert checked.peak_mib <= MOST_MIB
    assert checked.beyond == ()
    assert checked.changed == ()


def few(most: int) -> settings:
    quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples(most),
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=quiet,
        derandomize=True,
    )


@few(25)
@given(study=hostile_studies())
def test_a_hostile_study_ends_in_one_sentence_and_adds_no_directive(
    checker: Checker, study: HostileStudy, tmp_path_factory: pytest.TempPathFactory
):
    expect_harmless(checker.check(study.put_into(tmp_path_factory.mktemp("hostile") / "x")))


@few(5)
@given(study=hostile_studies())
def test_a_hostile_study_opens_nothing_for_writing_outside_its_folder(
    traced: Checker, study: HostileStudy, tmp_path_factory: pytest.TempPathFactory
):
    expect_harmless(traced.check(study.put_into(tmp_path_factory.mktemp("hostile") / "x")))


def test_the_trace_sees_what_a_whole_check_runs_and_writes(traced: Checker, tmp_path: Path):
    study = tmp_path / "study.yaml"
    study.write_text("study: usual\nservers: [nginx]\nspace: [nginx]\nload: {connections: 2}\n")

    checked = traced.check(study)

    assert checked.code == 0, checked.said
    assert {Path(each).name for each in checked.programs} >= {"nginx", "wrk", "unshare", "nsenter"}
    assert checked.changed == ()


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        ('openat(AT_FDCWD</a>, "/etc/x", O_RDONLY|O_CLOEXEC) = 3</etc/x>', ()),
        ('openat(AT_FDCWD</a>, "lock", O_RDWR|O_CREAT, 0644) = 3</etc/passwd>', ("/etc/passwd",)),
        ('openat(AT_FDCWD</a>, "/etc/x", O_WRONLY) = -1 EACCES (Permission denied)', ()),
        ('openat(AT_FDCWD</a>, "/a/study.study/lock", O_RDWR|O_CREAT, 0644) = 3</a/study.study/lock>', ()),
        ('openat(AT_FDCWD</a>, "/dev/null", O_RDWR) = 3</dev/null<char 1:3>>', ()),
        ('rename("/a/x", "/etc/y") = 0', ("/a/x", "/etc/y")),
        ('unlinkat(AT_FDCWD</a>, "/etc/y", 0) = 0', ("/etc/y",)),
    ],
)
def test_the_trace_tells_what_was_changed_outside_the_folder(call: str, changed: tuple[str, ...]):
    assert read_trace([f"71 {call}"], Path("/a/study.yaml"))[0] == changed


def test_a_call_that_another_process_cut_in_two_is_read_as_one():
    lines = [
        '7  openat(AT_FDCWD</a>, "x",  <unfinished ...>',
        '8  openat(AT_FDCWD</a>, "y", O_RDONLY) = 3</a/y>',
        "7  <... openat resumed>O_WRONLY|O_CREAT, 0644) = 3</a/x>",
    ]

    assert read_trace(lines, Path("/a/study.yaml"))[0] == ("/a/x",)
