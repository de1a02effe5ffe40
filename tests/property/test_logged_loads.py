"""Whatever a log has, a study can be made of it, and nothing that identifies anybody is in that study."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tuner.commands.logged_load import LoggedLoad, read_logs
from tuner.errors import UsageError
from tuner.kit.access_log import read_second
from tuner.ports import LogField
from tuner.study import load_study
from tuner.traffic.kinds import KindCounter, read_request
from tuner.traffic.reading import JsonLines, list_formats

EXAMPLES = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
STUDY = "study: a\nservers: [nginx]\nspace: [nginx]\ncontent: /srv\nload:\n  generator: wrk\n  "
MARK = "SECRET"
"""In every value that must not leave a log."""
SECRETS = st.text("abcxyz0189", min_size=1, max_size=8).map(lambda text: f"{MARK}{text}")
PATHS = st.one_of(
    st.sampled_from(("/", "/a.css", "/item/17", "/item/18", "/index.php", "/a/../b")),
    st.text(st.characters(max_codepoint=255, exclude_characters="\n?;# "), max_size=30).map("/{}".format),
)
STATUSES = st.sampled_from((200, 200, 200, 206, 301, 302, 304, 404, 500, 499))
LENGTHS = st.integers(min_value=0, max_value=2**40)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, object]:
    """Draw a request whose address, user, query and headers are marked."""
    query = draw(st.sampled_from(("", "?q={}", ";jsessionid={}", "?{}", "#{}", "%3Fq={}")))
    target = draw(PATHS) + query.format(draw(SECRETS))
    return {
        "address": draw(SECRETS), "user": draw(SECRETS), "header": draw(SECRETS), "target": target,
        "status": draw(STATUSES), "size": draw(LENGTHS), "second": draw(st.integers(0, 59)),
    }  # fmt: skip


def write_combined(each: dict[str, object]) -> str:
    time = f"12/Mar/2026:10:00:{each['second']:02} +0000"
    return (
        f'{each["address"]} - {each["user"]} [{time}] "GET {each["target"]} HTTP/1.1" {each["status"]} '
        f'{each["size"]} "https://a.test/?{each["header"]}" "{each["header"]}"\n'
    )


def write_json(each: dict[str, object]) -> str:
    headers = {"Cookie": [each["header"]], "Authorization": [each["header"]]}
    request = {
        "remote_ip": each["address"], "remote_port": "1", "method": "GET", "uri": each["target"],
        "proto": "HTTP/1.1", "headers": headers,
    }  # fmt: skip
    line = {
        "ts": 1773309600 + int(str(each["second"])), "request": request, "user_id": each["user"],
        "status": each["status"], "size": each["size"],
    }  # fmt: skip
    return json.dumps(line) + "\n"


def read(path: Path, *, stands_in: bool) -> LoggedLoad:
    try:
        return read_logs([str(path)], log_format=None, takes_unsafe=False, stands_in=stands_in)
    except UsageError as refused:  # no line of it could be used
        assert str(refused)  # noqa: PT017 - the property holds for every message
        assume(False)  # noqa: FBT003
        raise


@pytest.mark.parametrize("write", [write_combined, write_json])
@pytest.mark.parametrize("stands_in", [False, True])
@EXAMPLES
@given(logged=st.lists(requests(), min_size=1, max_size=40))
def test_a_study_of_any_log_can_be_read_and_has_no_secret_of_it(tmp_path, write, stands_in, logged):
    log = tmp_path / "access.log"
    log.write_bytes("".join(map(write, logged)).encode("latin-1"))

    load = read(log, stands_in=stands_in)

    (tmp_path / "a.yaml").write_text(STUDY + load.mix_as_yaml() + "\n")
    study = load_study(tmp_path / "a.yaml")
    assert [(each.path, each.status) for each in study.load.requests] == [
        (each.path, each.status) for each in load.kinds
    ]
    written = (tmp_path / "a.yaml").read_text() + json.dumps(load.as_json())
    written += "".join(f"{each.file}" for each in load.stand_ins)
    assert MARK not in written
    assert load.kept + sum(load.left_out.values()) == load.requests


@EXAMPLES
@given(logged=st.lists(requests(), min_size=1, max_size=40))
def test_files_of_a_stand_in_stay_in_its_folder(tmp_path, logged):
    log = tmp_path / "access.log"
    log.write_bytes("".join(map(write_combined, logged)).encode("latin-1"))

    load = read(log, stands_in=True)

    files = [each.file for each in load.stand_ins if each.file is not None]
    assert len({*files}) == len(files)
    for file in files:
        assert not file.is_absolute()
        assert not {"..", ".", ""} & {*file.parts}
        assert str(file).isascii()
        assert str(file).isprintable()
        assert not any(file in other.parents for other in files)


@EXAMPLES
@given(text=st.text(max_size=300), line=st.text(max_size=300))
def test_any_text_is_read_or_passed_over(text, line):
    for each in list_formats():
        assert len(each.rows(text)) <= text.count("\n") + 1
    read_second(text)
    read_request(line)
    found = JsonLines.find(text)
    assert found is None or found.rows(text)


@EXAMPLES
@given(
    rows=st.lists(
        st.tuples(PATHS, STATUSES, LENGTHS, st.integers(min_value=1, max_value=500)), min_size=1, max_size=150
    ),
    most=st.integers(min_value=3, max_value=50),
)
def test_kinds_are_few_and_account_for_every_request(rows, most):
    counter = KindCounter()
    for path, status, length, times in rows:
        counter.add(
            {
                LogField.REQUEST: [f"GET {path} HTTP/1.1"] * times,
                LogField.STATUS: [str(status)] * times,
                LogField.BYTES: [str(length)] * times,
            }
        )

    kinds = counter.kinds(most)

    assert len(kinds) <= most
    assert sum(each.count for each in kinds) + sum(counter.left_out.values()) == counter.requests
    assert len({(each.method, each.path) for each in kinds}) == len(kinds)
