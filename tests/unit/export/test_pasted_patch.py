"""What is copied out of the page is the patch, byte for byte."""

import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.export.test_host_change import of_nginx
from tests.unit.simulated_study import make_summary
from tuner.export import write_change
from tuner.report.page import render_report

BEFORE = {
    "tabs": b"\tlisten\t80;\n\t\troot /srv;\n",
    "line ends of Windows": b"listen 80;\r\nroot /srv;\r\nindex a;\r\n",
    "no line end": b"listen 80;\nroot /srv;",
    "blanks at the end": b"listen 80;  \t \nroot /srv;   \n   \n",
    "signs of HTML": b"# <b>&amp;</b> \"q\" 'p' &#9;\nroot <&>;\n",
    "other alphabets": "# Größe, 容量, naïve\u00a0café \U0001f600\nroot /srv;\n".encode(),
    "a page break and a lone return": b"listen 80;\x0c\nroot\r/srv;\n",
    "lines like those of a patch": b"-- a\n++ b\n@@ -1 +1 @@\n# c\nroot /srv;\n",
}


class Diff(HTMLParser):
    """Collects the text of the block that the button copies."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self._is_inside = False
        # As a browser does before it reads tags.
        self.feed(page.replace("\r\n", "\n").replace("\r", "\n"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_inside = self._is_inside or (tag == "pre" and ("id", "diff") in attrs)

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        self.text += data * self._is_inside


def make_page(before: bytes, after: bytes) -> str:
    """Return the page of a winner that changes a file."""
    summary = make_summary(searches=4)
    return render_report(summary, change=write_change(summary, {"nginx": of_nginx(before, after)}))


def change(before: bytes) -> bytes:
    return before.replace(b"root", b"\troot \xc3\xa9", 1) + b"sendfile\ton;"


def apply_patch(text: str, before: bytes, folder: Path) -> bytes:
    """Apply a pasted patch to a file and return what it is then."""
    file = folder / "etc/nginx/nginx.conf"
    file.parent.mkdir(parents=True)
    file.write_bytes(before)
    subprocess.run(
        ["patch", "-p1", "-d", folder, "--fuzz=0", "--no-backup-if-mismatch"],
        input=text.encode(), check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return file.read_bytes()


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_the_patch_on_the_page_applies_as_it_is(before: bytes, tmp_path: Path) -> None:
    text = Diff(make_page(before, change(before))).text

    assert apply_patch(text, before, tmp_path) == change(before)


@pytest.mark.parametrize("strange", [b"caf\xe9", "a\u202eb".encode(), b"a\x1b[2Jb", b"a\0b"])
def test_what_no_page_can_hold_is_named_instead(strange: bytes) -> None:
    before = b"# " + strange + b"\nroot /srv;\n"

    text = Diff(make_page(before, change(before))).text

    assert text == "# /etc/nginx/nginx.conf: has signs that cannot be pasted. Use the files of an export.\n"


def test_a_patch_of_several_files_with_remarks_applies(tmp_path: Path) -> None:
    before = BEFORE["tabs"]
    other = PurePosixPath("/etc/nginx/a b.conf")
    rewritten = of_nginx(before, change(before))
    both = replace(
        rewritten, after={**rewritten.after, other: b"gzip\ton;\n"}, by_hand={"jit": "set it in php.ini"}
    )
    summary = make_summary(searches=4)
    text = Diff(render_report(summary, change=write_change(summary, {"nginx": both}))).text

    assert apply_patch(text, before, tmp_path) == change(before)
    assert (tmp_path / "etc/nginx/a b.conf").read_bytes() == b"gzip\ton;\n"
