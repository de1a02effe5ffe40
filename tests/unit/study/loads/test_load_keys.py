"""`body:`, `headers:`, `ca:` and `verify:` of a load."""

from pathlib import PurePosixPath

import pytest

from tests.unit.simulation import space_of
from tuner.errors import UsageError
from tuner.ports import Body, BodyCheck
from tuner.study import load_study

SECRET = "bWU6aXQ"  # noqa: S105 - of nobody
MANAGED = "target: {mode: managed}\n"


@pytest.fixture
def study(tmp_path):
    def read(load: str, more: str = ""):
        path = tmp_path / "study.yaml"
        path.write_text(f"study: test\nservers: [nginx]\nspace: [nginx]\nload: {load}\n{more}")
        return load_study(path)

    return read


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("any", Body(check=BodyCheck.ANY)),
        ("length", Body(check=BodyCheck.LENGTH)),
        ("checksum", Body(check=BodyCheck.CHECKSUM)),
        ("{contains: </html>}", Body(check=BodyCheck.CONTAINS, contains="</html>")),
        ("null", Body()),
    ],
)
def test_a_study_says_how_bodies_are_judged(study, body, read):
    assert study(f"{{path: /a, body: {body}}}").load.body == read
    assert study(f"{{requests: [{{path: /a, body: {body}}}]}}").load.requests[0].body == read


def test_headers_of_the_load_are_those_of_every_request_unless_it_has_its_own(study):
    load = study("{headers: {X-A: 1, X-B: 2}, requests: [{path: /a}, {path: /b, headers: {x-b: 3}}]}").load

    assert [each.headers for each in load.requests] == [{"X-A": "1", "X-B": "2"}, {"X-A": "1", "x-b": "3"}]


def test_values_of_headers_that_may_be_secret_are_shown_and_kept_nowhere(study):
    headers = f"{{Authorization: Basic {SECRET}, Cookie: s={SECRET}, X-Key: {SECRET}, Accept-Language: de}}"
    space = space_of("sendfile")
    studies = (study(f"{{headers: {headers}}}"), study(f"{{requests: [{{path: /a, headers: {headers}}}]}}"))

    for each in studies:
        shown = f"{each.describe_load()} {each.definition(space)}"
        assert SECRET not in shown
        assert "Accept-Language" in shown


def test_another_judgement_is_another_study_and_none_is_what_it_was(study):
    space = space_of("sendfile")
    plain, other = study("{path: /a}"), study("{path: /a, body: any, headers: {X: y}}")

    assert plain.definition(space) != other.definition(space)
    assert not {"load.body", "load.headers"} & plain.definition(space).keys()


def test_an_installed_server_may_have_a_certificate_that_nobody_else_trusts(study, tmp_path):
    load = study("{path: 'https://shop.test/', ca: own/ca.pem}", MANAGED).load

    assert (load.certificate, load.verifies) == (PurePosixPath(tmp_path / "own/ca.pem"), True)
    assert not study("{path: 'https://shop.test/', verify: false}", MANAGED).load.verifies
    assert "certificates not verified" in study("{path: 'https://a/', verify: no}", MANAGED).describe_load()


@pytest.mark.parametrize(
    ("load", "more", "said"),
    [
        (
            "{body: same}",
            "",
            "'same' is no way to judge a body. Write any, length, checksum, or {contains: TEXT}",
        ),
        ("{body: {contain: a}}", "", "contain: this key is not known. Did you mean contains?"),
        ("{body: {contains: ''}}", "", "contains"),
        (
            "{body: {contains: a}, accept_encoding: gzip}",
            "",
            "`contains` cannot be judged in a compressed body",
        ),
        (
            "{generator: k6, script: a.js, body: any}",
            "",
            "your script judges the responses. Leave `body:` out",
        ),
        (
            "{headers: {accept-encoding: gzip}}",
            "",
            "has a key of its own. Write `load.accept_encoding: gzip`",
        ),
        ("{headers: {X: ''}}", "", "this header has no value"),
        ('{headers: {X: "a\\r\\nb"}}', "", "the value of this header is not one line of ASCII text"),
        ("{headers: {'X: a': b}}", "", "'X: a' is no name of a header"),
        (f"{{headers: {{X: {'a' * 4001}}}}}", "", "4001 characters are too many for a header"),
        ("{ca: ca.pem}", "", "private instances have their own certificate"),
        (
            "{path: /a, verify: no}",
            MANAGED,
            "/a is requested without TLS, so no certificate is checked. Write a whole URL: `path: ",
        ),
        (
            "{path: 'https://a/', ca: a.pem, verify: no}",
            MANAGED,
            "`ca:` and `verify: false` cannot be combined",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_at_its_line(study, load, more, said):
    with pytest.raises(UsageError) as refused:
        study(load, more)

    assert said in str(refused.value)
    assert "study.yaml:4" in str(refused.value)
    assert "a\r\nb" not in str(refused.value)
