"""Parsers of load generators: whatever is printed, they give a result or raise LoadFailed."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.adapters.loads.golden import cases, load_of, read
from tuner.errors import LoadFailed
from tuner.ports import Completed, Files, LoadGenerator, LoadResult, Workload

CASES = cases()
ONE_OF_EACH = {case.parent.name: case for case in CASES}
EXAMPLES = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
LINES = [
    line for case in CASES for line in case.with_suffix(".stdout").read_bytes().splitlines(keepends=True)
]
STATUSES = st.sampled_from((0, 1, 22, 24, 99, 101, 104, 107, 111, 119, 124, 134, -6, -9, -15))


def parse(load: LoadGenerator, completed: Completed, outputs: Files, workload: Workload) -> LoadResult | None:
    """Parse; LoadFailed is None, and everything else that is raised fails the test."""
    try:
        return load.parse(completed, outputs, workload)
    except LoadFailed as failed:
        assert str(failed)  # noqa: PT017 - the property holds for every message
        return None


def changed(completed: Completed, stdout: bytes, stderr: bytes, returncode: int) -> Completed:
    return Completed(
        argv=completed.argv,
        returncode=returncode,
        stdout=stdout,
        stderr=stderr,
        duration_s=completed.duration_s,
    )


@pytest.mark.parametrize("adapter", ONE_OF_EACH)
@EXAMPLES
@given(stdout=st.binary(), stderr=st.binary(), output=st.binary(), returncode=STATUSES)
def test_any_bytes_are_a_result_or_a_failed_load(
    adapter: str, stdout: bytes, stderr: bytes, output: bytes, returncode: int
):
    case = ONE_OF_EACH[adapter]
    load = load_of(case)
    completed, _, workload, _ = read(case)

    outputs = dict.fromkeys(load.outputs(workload), output)
    parse(load, changed(completed, stdout, stderr, returncode), outputs, workload)


@pytest.mark.parametrize("adapter", ONE_OF_EACH)
@EXAMPLES
@given(lines=st.lists(st.sampled_from(LINES), max_size=40), returncode=STATUSES)
def test_shuffled_lines_of_real_output_are_a_result_or_a_failed_load(
    adapter: str, lines: list[bytes], returncode: int
):
    case = ONE_OF_EACH[adapter]
    load = load_of(case)
    completed, outputs, workload, _ = read(case)

    text = b"".join(lines)
    parse(load, changed(completed, text, text, returncode), outputs, workload)


@EXAMPLES
@given(data=st.data())
def test_real_output_with_one_changed_piece_is_a_result_or_a_failed_load(data: st.DataObject):
    case = data.draw(st.sampled_from(CASES))
    completed, outputs, workload, _ = read(case)
    size = len(completed.stdout)
    start = data.draw(st.integers(0, size))
    end = data.draw(st.integers(start, min(size, start + 40)))
    piece = data.draw(st.binary(max_size=8) | st.sampled_from((b"-1", b"1e999", b"9" * 400, b"null", b"NaN")))

    stdout = completed.stdout[:start] + piece + completed.stdout[end:]
    parse(
        load_of(case), changed(completed, stdout, completed.stderr, completed.returncode), outputs, workload
    )


@EXAMPLES
@given(data=st.data())
def test_cut_output_never_gives_another_count_silently(data: st.DataObject):
    case: Path = data.draw(st.sampled_from(CASES))
    load = load_of(case)
    completed, outputs, workload, expected = read(case)
    cut_file = data.draw(st.sampled_from((None, *outputs)))
    whole = completed.stdout if cut_file is None else outputs[cut_file]
    kept = whole[: data.draw(st.integers(0, len(whole)))]
    if cut_file is None:
        completed = changed(completed, kept, completed.stderr, completed.returncode)
    else:
        outputs = {**outputs, cut_file: kept}

    result = parse(load, completed, outputs, workload)

    if result is not None and result.aborted is None:
        assert result.correct == expected["correct"]
        assert result.failures.total == sum(expected["failures"].values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_a_command_that_was_killed_is_a_failed_load(case: Path):
    completed, outputs, workload, _ = read(case)
    killed = changed(completed, completed.stdout, completed.stderr, -9)

    with pytest.raises(LoadFailed, match="signal"):
        load_of(case).parse(killed, outputs, workload)
