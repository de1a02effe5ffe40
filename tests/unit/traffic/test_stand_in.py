"""Files in place of a site: names that mean nothing to any program, sizes as they were sent."""

import gzip
from pathlib import PurePosixPath

import pytest

from tuner.traffic import stand_in
from tuner.traffic.kinds import Kind
from tuner.traffic.stand_in import plan_stand_ins


def kind(path: str, *, status: int = 200, size: int = 100) -> Kind:
    return Kind(method="GET", path=path, template=path, status=status, count=1, mean_bytes=size)


@pytest.mark.parametrize(
    ("path", "asked", "file"),
    [
        ("/", "/", "index.html"),
        ("/blog/", "/blog/", "blog/index.html"),
        ("/a/b.css", "/a/b.css", "a/b.css"),
        ("/index.php", "/index.php.html", "index.php.html"),
        ("/../../etc/passwd", "/_/_/etc/passwd", "_/_/etc/passwd"),
        ("/%2e%2e%2fetc/passwd", "/_/etc/passwd", "_/etc/passwd"),
        ("/.htaccess", "/htaccess", "htaccess"),
        ("/a%00b%0a", "/a-b-", "a-b-"),
        ("/%2F", "/", "index.html"),
    ],
)
def test_a_path_becomes_a_harmless_name(path: str, asked: str, file: str):
    (planned,) = plan_stand_ins([kind(path)])

    assert (planned.kind.path, planned.file, planned.size) == (asked, PurePosixPath(file), 100)


def test_a_page_that_is_a_folder_of_others_has_a_place_of_its_own():
    planned = plan_stand_ins([kind("/blog"), kind("/blog/a"), kind("/blog/"), kind("/blog/a/b")])

    assert [each.kind.path for each in planned] == ["/blog", "/blog-2/a", "/blog-2/", "/blog-3/a/b"]
    assert len({each.file for each in planned}) == 4


def test_a_status_is_given_as_a_server_of_files_can():
    moved, gone, denied = plan_stand_ins(
        [kind("/old", status=302), kind("/none", status=404), kind("/x/", status=403)]
    )

    assert (moved.kind.path, moved.kind.status, moved.file) == ("/old", 301, PurePosixPath("old/index.html"))
    assert (gone.kind.path, gone.kind.status, gone.file) == ("/none", 404, None)
    assert (denied.kind.path, denied.kind.status, denied.file) == ("/x", 404, None)


def test_what_is_not_found_is_no_file_of_another_request():
    planned = plan_stand_ins([kind("/a", status=404), kind("/a", size=7)])

    assert [(each.kind.path, each.kind.status) for each in planned] == [("/2-a", 404), ("/a", 200)]


@pytest.mark.parametrize(("name", "least", "most"), [("/a.html", 2.2, 5), ("/a.jpg", 0.9, 1.05)])
def test_files_are_as_long_and_as_compressible_as_their_kind(name: str, least: float, most: float):
    (planned,) = plan_stand_ins([kind(name, size=300_001)])

    content = planned.content()

    assert len(content) == 300_001
    assert least < len(content) / len(gzip.compress(content)) < most
    assert content == planned.content()


def test_all_files_together_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stand_in, "MOST_BYTES", 1000)

    planned = plan_stand_ins([kind("/a", size=5000), kind("/b", size=10)])

    assert [(each.size, each.is_cut) for each in planned] == [(500, True), (10, False)]


def test_an_empty_response_is_an_empty_file():
    (planned,) = plan_stand_ins([kind("/a", size=0)])

    assert planned.content() == b""
