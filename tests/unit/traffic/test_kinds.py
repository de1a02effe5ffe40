"""Requests as kinds: what a path is an example of, what covers most, what stands for the rest."""

from collections.abc import Mapping

import pytest

from tuner.ports import LogField
from tuner.traffic.kinds import Kind, KindCounter, read_request


def count(requests: Mapping[tuple[str, int, int], int]) -> KindCounter:
    """Count requests by path, status and length."""
    rows = [each for each, times in requests.items() for _ in range(times)]
    counter = KindCounter()
    counter.add(
        {
            LogField.REQUEST: [f"GET {path} HTTP/1.1" for path, _, _ in rows],
            LogField.STATUS: [str(status) for _, status, _ in rows],
            LogField.BYTES: [str(length) for _, _, length in rows],
        }
    )
    return counter


def by_path(kinds: tuple[Kind, ...]) -> dict[str, tuple[int, int]]:
    return {each.path: (each.count, each.status) for each in kinds}


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/", "/"),
        ("/item/17", "/item/*"),
        ("/item/18/edit", "/item/*/edit"),
        ("/app.3f9a8b7c.js", "/app.*.js"),
        ("/u/0b9c3a52-7d7e-4a5b-9f1e-2c3d4e5f6a7b", "/u/*"),
        ("/t/Zm9vYmFyYmF6cXV4MTIzNDU2", "/t/*"),
        ("/documentation/introduction", "/documentation/introduction"),
    ],
)
def test_numbers_hashes_and_identifiers_become_one_form(path: str, template: str):
    asked = read_request(f"GET {path} HTTP/1.1")

    assert asked is not None
    assert asked.template == template


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/a?user=1", "/a"),
        ("/a;jsessionid=77", "/a"),
        ("/a%3Fuser=1", "/a"),
        ("/a#part", "/a"),
        ("http://alice:secret@shop.test/a?b", "/a"),
        ("http://shop.test", "/"),
        ("/caf\xc3\xa9", "/caf%C3%A9"),
        (r"/caf\xC3\xA9", "/caf%C3%A9"),
        ('/a"b', "/a%22b"),
        ("/a b", "/a%20b"),
    ],
)
def test_a_path_has_neither_query_nor_what_cannot_be_sent(target: str, path: str):
    asked = read_request(f"GET {target} HTTP/1.1")

    assert asked is not None
    assert asked.path == path


@pytest.mark.parametrize("line", ["", "-", "GET", "\x16\x03\x01", "GET * HTTP/1.1", "get\x00 / HTTP/1.1"])
def test_what_is_no_request_line_asks_for_nothing(line: str):
    assert read_request(line) is None


def test_one_form_has_a_kind_for_each_size_and_its_most_frequent_path():
    kinds = count({("/i/1", 200, 900): 4, ("/i/2", 200, 1000): 6, ("/i/3", 200, 90_000): 5}).kinds()

    assert by_path(kinds) == {"/i/2": (10, 200), "/i/3": (5, 200)}
    assert [each.mean_bytes for each in kinds] == [960, 90_000]


def test_a_path_expects_its_most_frequent_status():
    assert by_path(count({("/a", 200, 10): 9, ("/a", 302, 0): 3}).kinds()) == {"/a": (12, 200)}


def test_what_was_not_modified_counts_with_the_whole_response():
    counter = count({("/a", 304, 0): 5, ("/a", 200, 500): 2, ("/b", 304, 0): 1})

    kinds = counter.kinds()

    assert by_path(kinds) == {"/a": (7, 200), "/b": (1, 200)}
    assert kinds[0].mean_bytes == 500
    assert counter.conditional == 6


def test_failures_are_no_part_of_the_load():
    counter = count({("/a", 200, 1): 5, ("/a", 500, 1): 2, ("/a", 499, 0): 1, ("/ws", 101, 0): 1})

    assert by_path(counter.kinds()) == {"/a": (5, 200)}
    assert sum(counter.left_out.values()) == 4


def test_the_rest_is_one_kind_with_a_path_that_has_its_status():
    words = ["".join(chr(ord("a") + int(digit)) for digit in str(number)) for number in range(200)]
    requests = {(f"/{word}/{word}x", 200, 2 ** (index % 20)): 1 + index for index, word in enumerate(words)}
    counter = count({**requests, ("/gone", 404, 100): 3})

    kinds = counter.kinds(10)

    assert len(kinds) <= 10
    (tail,) = [each for each in kinds if each.is_tail]
    assert (tail.path, tail.status) != ("/gone", 200)
    assert sum(each.count for each in kinds) + sum(counter.left_out.values()) == counter.requests


def test_rare_files_of_a_folder_are_one_kind():
    words = ["".join(chr(ord("a") + int(digit)) for digit in str(number)) for number in range(1000, 1100)]
    requests = {(f"/blog/{word}", 200, 1000): 1 for word in words}

    kinds = count({**requests, ("/", 200, 5000): 100}).kinds(4)

    assert {each.template for each in kinds} >= {"/", "/blog/*"}
