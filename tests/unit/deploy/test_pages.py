import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tuner.deploy.pages import AnotherPage, Page, Pages
from tuner.deploy.readiness import Answer
from tuner.errors import NotReady
from tuner.ports import Body, BodyCheck, RequestKind

KIND = RequestKind(path="/a")
HEADER_BYTES = 100


def answer(
    body: bytes = b"abc", *, status: int = 200, header_bytes: int = HEADER_BYTES, chunked: bool = False
) -> Answer:
    return Answer(
        status=status, body_bytes=len(body), response_bytes=len(body) + header_bytes,
        said=body.decode(errors="replace"), body=body, is_chunked=chunked,
    )  # fmt: skip


@dataclass
class Site:
    """Answers what a function of the number of the request says."""

    make: Callable[[int], Answer]
    asked: list[RequestKind] = field(default_factory=list)
    often_asked: int = 0

    def once(self, kind: RequestKind) -> Answer:
        self.asked.append(kind)
        return self.make(len(self.asked) + self.often_asked)

    def often(self, kind: RequestKind, times: int, seconds: float) -> Sequence[Answer]:
        _ = kind, seconds
        self.often_asked += times
        return [self.make(number) for number in range(times)]


def giving(*bodies: bytes) -> Site:
    """Give one body after the other, and all of them again."""
    return Site(lambda number: answer(bodies[number % len(bodies)]))


def learn(site: Site, kind: RequestKind = KIND, pages: Pages | None = None) -> Page:
    (page,) = (pages or Pages()).learn([kind], site)
    return page


def judged(check: BodyCheck, **more: str) -> RequestKind:
    return replace(KIND, body=Body(check=check, **more))


def test_a_page_that_stays_the_same_is_judged_by_its_length():
    page = learn(giving(b"abc"))

    assert page == Page(kind=replace(KIND, body_bytes=3), response_bytes=103)


def test_a_length_that_is_known_is_asked_for_once():
    site = giving(b"abc")

    learn(site, replace(KIND, body_bytes=3))

    assert (len(site.asked), site.often_asked) == (1, 0)


def of_every_twentieth(other: bytes, usual: bytes) -> Site:
    return Site(lambda number: answer(other if number % 20 == 19 else usual))


@pytest.mark.parametrize(
    "site",
    [
        giving(b"<p>visits: 9999</p>", b"<p>visits: 10000</p>"),
        giving(b"<p>token 5c2e</p>", b"<p>token a1d7</p>"),
        giving(b"x" * 600, b"x" * 900),
        of_every_twentieth(b"x" * 4000, b"x" * 600),
    ],
)
def test_a_page_that_varies_is_judged_by_its_status_and_is_not_empty(site: Site):
    page = learn(site)

    assert page.kind.body_bytes is None
    assert page.kind.body.varies
    assert page.kind.body.least_bytes == 1
    assert page.response_bytes is None
    assert "/a varies" in page.said


@pytest.mark.parametrize(
    ("bodies", "marker"),
    [
        ((b"<p>visits: 9999</p>", b"<p>visits: 10000</p>"), "<p>visits: "),
        ((b"<input name=csrf value=ab12>", b"<input name=csrf value=ac47>"), "<input name=csrf value="),
        ((b"<p>12:01 o'clock</p>", b"<p>12:02 o'clock</p>"), ""),
        ((b"ab cd", b"ab"), ""),
        ((b"x" * 500, b"x" * 900), "x" * 64),
        ((bytes(range(128, 200)), bytes(range(128, 201))), ""),
    ],
)
def test_what_all_answers_begin_with_marks_a_page_that_varies(bodies: Sequence[bytes], marker: str):
    plain = giving(*bodies)
    packed = Site(lambda number: replace(plain.make(number), body_bytes=20 + number))

    assert learn(plain).kind.body.contains == marker
    assert not learn(packed).kind.body.contains


def test_what_varied_once_is_judged_so_in_each_later_trial():
    pages = Pages()
    learn(giving(b"page 1 is here", b"page 22 is here"), pages=pages)

    assert learn(giving(b"page 1 is here"), pages=pages).kind.body.varies


def test_a_page_that_was_replaced_once_is_judged_by_its_new_length_and_then_no_more():
    pages = Pages()
    kinds = [learn(giving(body), pages=pages).kind for body in (b"9 minutes", b"10 minutes", b"11 minutes")]

    assert [each.body_bytes for each in kinds] == [9, 10, None]


@pytest.mark.parametrize(
    "site",
    [
        Site(lambda number: answer(header_bytes=HEADER_BYTES + number % 2 * 300)),
        Site(lambda _: answer(chunked=True)),
    ],
)
def test_a_page_whose_bytes_on_the_wire_say_little_is_looked_at_each_time(site: Site):
    page = learn(site)

    assert page.kind.body_bytes == 3
    assert page.kind.body.needs_look
    assert page.response_bytes is None


def test_a_page_that_fails_now_and_then_is_learned_all_the_same():
    numbers = itertools.count()
    site = Site(lambda _: answer(status=500 if next(numbers) == 1 else 200))

    assert learn(site).kind.body_bytes == 3


def test_an_empty_page_may_be_empty():
    assert learn(giving(b"", b"abc")).kind.body.least_bytes == 0
    assert learn(giving(b"")).kind.body_bytes == 0


def test_a_study_may_accept_any_body():
    page = learn(giving(b"abc", b""), judged(BodyCheck.ANY))

    assert page.kind.body_bytes is None
    page.refuse_another(answer(b""), "http://a/")
    with pytest.raises(AnotherPage, match=r"gave 500 with 3 bytes, where the original .* gives 200"):
        page.refuse_another(answer(status=500), "http://a/")


def test_a_study_may_look_for_a_text():
    kind = judged(BodyCheck.CONTAINS, contains="b\u00e9")

    page = learn(giving("b\u00e9 1".encode(), "b\u00e9 22".encode()), kind)

    assert page.kind.body.needs_look
    with pytest.raises(NotReady, match="where 200 with a body that contains 'b\u00e9' was expected: 'abc'"):
        learn(giving(b"abc"), kind)


def test_a_study_may_insist_on_one_length():
    assert learn(giving(b"abc", b"abd"), judged(BodyCheck.LENGTH)).kind.body_bytes == 3
    with pytest.raises(NotReady, match=r"/a answers with 3 to 4 bytes, so the length varies\. Leave"):
        learn(giving(b"abc", b"abcd"), judged(BodyCheck.LENGTH))


def test_a_study_may_compare_every_body():
    page = learn(giving(b"abc"), judged(BodyCheck.CHECKSUM))

    assert page.kind.body.content == b"abc"
    with pytest.raises(AnotherPage):
        page.refuse_another(answer(b"abd"), "http://a/")
    with pytest.raises(NotReady, match=r"two different bodies, so no checksum fits both\. Write `body: any`"):
        learn(giving(b"abc", b"abd"), judged(BodyCheck.CHECKSUM))


@pytest.mark.parametrize("status", [204, 301, 401])
def test_what_the_study_expects_is_right_whatever_its_status(status: int):
    page = learn(Site(lambda _: answer(b"", status=status)), replace(KIND, status=status))

    assert page.kind.body_bytes == 0


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
        learn(Site(lambda _: answer(status=status)), kind)


def test_a_response_of_the_right_checksum_is_correct():
    kind = replace(KIND, sha256=hashlib.sha256(b"abc").hexdigest())

    assert learn(giving(b"abc"), kind).kind.body_bytes == 3
