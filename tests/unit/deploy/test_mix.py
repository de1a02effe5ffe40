import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from tuner.deploy.mix import learn_mix, origin_of
from tuner.deploy.readiness import Answer
from tuner.errors import NotReady
from tuner.ports import RequestKind

KIND = RequestKind(path="/a")


def giving(*bodies: bytes, status: int = 200) -> Callable[[RequestKind], Answer]:
    following = iter(bodies * 2)

    def ask(_: RequestKind) -> Answer:
        body = next(following)
        return Answer(
            status=status, body_bytes=len(body), response_bytes=0, said=body.decode(), body=body
        )  # fmt: skip

    return ask


def test_the_length_of_the_correct_response_is_learned():
    assert learn_mix(giving(b"abc"), [KIND]) == (replace(KIND, body_bytes=3),)


def test_a_length_that_is_known_is_asked_for_once():
    asked = []

    def ask(kind: RequestKind) -> Answer:
        asked.append(kind)
        return giving(b"abc")(kind)

    learn_mix(ask, [replace(KIND, body_bytes=3)])

    assert len(asked) == 1


def test_a_response_that_changes_its_length_may_have_any():
    assert learn_mix(giving(b"abc", b"abcd"), [KIND]) == (KIND,)


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        (KIND, 404, r"GET /a gave 404 with 3 bytes, where 200 was expected: 'abc'\. Correct the request"),
        (replace(KIND, body_bytes=4), 200, "gave 200 with 3 bytes, where 200 with 4 bytes was expected"),
        (replace(KIND, sha256="0" * 64), 200, hashlib.sha256(b"abc").hexdigest()),
        (KIND, 0, r"gave no answer \(abc\)"),
    ],
)
def test_another_response_than_the_study_says_is_refused(kind: RequestKind, status: int, said: str):
    with pytest.raises(NotReady, match=said):
        learn_mix(giving(b"abc", status=status), [kind])


def test_a_response_of_the_right_checksum_is_correct():
    kind = replace(KIND, sha256=hashlib.sha256(b"abc").hexdigest())

    assert learn_mix(giving(b"abc"), [kind])[0].body_bytes == 3


def test_requests_go_to_the_origin_of_the_page_that_is_waited_for():
    assert origin_of("http://[::1]:8080/a/b?c=d") == "http://[::1]:8080"
