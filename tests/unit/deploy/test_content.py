import hashlib
import zlib
from pathlib import Path, PurePosixPath

import pytest

from tuner.deploy.builtin_pages import BUILTIN_PAGE, expect_page
from tuner.deploy.content import open_content
from tuner.errors import UsageError
from tuner.study.loads.builtin_loads import BUILTIN_LOADS, IMAGE_BYTES
from tuner.testing.fakes import MemorySandbox

IMAGE_SUM = "99c2d16f8f793dce3dadd89508880b1d32c36913eda298ae14dc0a9cae41902b"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("hello")
    (tmp_path / "a b.html").write_text("spaced")
    (tmp_path / "run.php").write_text("<?php")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_the_builtin_page_is_as_long_as_the_one_that_nginx_installs():
    assert len(BUILTIN_PAGE) == 615
    assert open_content("builtin", "/index.html").body_bytes == 615
    assert open_content("builtin", "/").body_bytes == 615
    assert open_content("builtin", "/page.php?a=b").body_bytes == len(expect_page())


def test_the_builtin_page_is_written_into_the_sandbox():
    sandbox = MemorySandbox()

    where = open_content("builtin", "/index.html").put_into(sandbox)

    assert sandbox.read(where / "index.html").content == BUILTIN_PAGE


def test_builtin_pages_are_as_long_as_those_that_others_measured():
    lengths = {path: open_content("builtin", path).body_bytes for path in ("/tiny.txt", "/page.html")}

    assert lengths == {"/tiny.txt": 44, "/page.html": 4300}


def test_an_image_is_the_same_everywhere_and_not_made_shorter_by_compression():
    image = open_content("builtin", "/images/07.jpg").body

    assert hashlib.sha256(image).hexdigest() == IMAGE_SUM
    assert len(image) == IMAGE_BYTES["/images/07.jpg"] < len(zlib.compress(image, 9))


def test_all_requests_of_a_mix_are_written_into_the_sandbox():
    load, sandbox = BUILTIN_LOADS["images"], MemorySandbox()
    content = open_content("builtin", load.path, others=[each.path for each in load.requests])

    where = content.put_into(sandbox)

    written = {path: len(sandbox.read(where / path.lstrip("/")).content) for path in content.lengths}
    assert written == content.lengths
    assert IMAGE_BYTES.items() <= written.items()


def test_another_page_of_the_builtin_content_is_refused():
    with pytest.raises(UsageError, match=r"load\.path: /big\.bin: .* Request /index\.html"):
        open_content("builtin", "/big.bin")


def test_a_path_must_begin_with_a_slash():
    with pytest.raises(UsageError, match=r"'index\.html' does not begin with a slash\. Write /index\.html\."):
        open_content("builtin", "index.html")


@pytest.mark.parametrize(
    ("path", "length"),
    [
        ("/index.html", 5),
        ("/", 5),
        ("//index.html", 5),
        ("/index.html?nocache=1", 5),
        ("/a%20b.html", 6),
        ("/run.php", None),
        ("/api/users", None),
        ("/empty/", None),
    ],
)
def test_the_length_of_the_body_is_known_for_files_and_not_for_programs(
    root: Path, path: str, length: int | None
):
    assert open_content(str(root), path).body_bytes == length


def test_a_document_root_is_shared_with_the_sandbox_and_not_copied(root: Path):
    sandbox = MemorySandbox()
    content = open_content(str(root), "/index.html")

    assert content.directory == PurePosixPath(root.resolve())
    assert content.put_into(sandbox) == sandbox.directory / "shared"
    assert not sandbox.written


def test_a_relative_document_root_is_relative_to_the_study(root: Path):
    content = open_content(root.name, "/index.html", base=root.parent)

    assert content.directory == PurePosixPath(root.resolve())


def test_a_document_root_that_is_not_there_is_refused(root: Path):
    with pytest.raises(
        UsageError, match=r"content: .*nowhere: the directory does not exist\. Give a document"
    ):
        open_content(str(root / "nowhere"), "/")


def test_a_file_as_document_root_is_refused(root: Path):
    with pytest.raises(UsageError, match="is not a directory"):
        open_content(str(root / "index.html"), "/")


def test_a_page_that_is_not_there_is_refused(root: Path):
    with pytest.raises(UsageError, match=r"load\.path: /missing\.html: .* has no such file"):
        open_content(str(root), "/missing.html")
