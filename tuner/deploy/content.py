"""What the tuned server serves: the built-in page, or a document root of the user."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from tuner.deploy.builtin_pages import BUILTIN_PAGES, BuiltinPage
from tuner.errors import UsageError
from tuner.ports import FileState, Sandbox
from tuner.study.loads.builtin_loads import BUILTIN, BUILTIN_LOADS

INDEX = "index.html"
DYNAMIC_SUFFIXES = frozenset({".cgi", ".fcgi", ".php", ".phtml", ".pl", ".py", ".shtml"})
"""Files that are not served as they are: the response has another length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The pages of one study."""

    directory: PurePosixPath | None
    """The user's document root; None for the built-in page."""
    path: str
    """What is requested: `/index.html`."""
    body_bytes: int | None
    """Length of the correct body; None when it cannot be known before it is served."""
    body: bytes | None = None
    """The correct body itself, where it is known."""
    lengths: Mapping[str, int | None] = field(default_factory=dict)
    """Path → length of the correct body, of all pages that are requested."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Of the built-in pages: what lies in the document root, by name."""

    def put_into(self, sandbox: Sandbox) -> PurePosixPath:
        """Make the pages visible in a sandbox and return their root; a user's directory is shared."""
        if self.directory is not None:
            return sandbox.directory / "shared"
        root = sandbox.directory / "content"
        for name, content in self.files.items():
            sandbox.write(root / name, FileState(content=content, mode=0o644))
        return root


def open_content(
    content: str, path: str, *, base: Path | None = None, others: Collection[str] = ()
) -> Content:
    """Check what a study wants to be served.

    Args:
        content: `builtin`, or the path of a document root.
        path: what the load requests, from `/` on.
        base: what a relative document root is relative to; the current directory by default.
        others: what is requested besides, and has to be there.

    Raises:
        UsageError: it does not exist, cannot be read, or has no such page.
    """
    if not path.startswith("/"):
        raise UsageError(f"load.path: {path!r} does not begin with a slash. Write /{path}.")
    if content == BUILTIN:
        return _open_builtin(path, others)
    root = _open_root(content, base)
    lengths = {each: _length(root, _page_of(each), content) for each in (path, *others)}
    return Content(directory=PurePosixPath(root), path=path, body_bytes=lengths[path], lengths=lengths)


def _page_of(path: str) -> PurePosixPath:
    """Return what a path asks for, without its query."""
    return PurePosixPath(unquote(urlsplit(path).path))


def _open_builtin(path: str, others: Collection[str]) -> Content:
    pages = {each: _builtin_page(each) for each in (path, *others)}
    files = {name: content for page in pages.values() for name, content in page.files.items()}
    lengths = {each: len(page.body) for each, page in pages.items()}
    body = pages[path].body
    return Content(directory=None, path=path, body_bytes=len(body), body=body, lengths=lengths, files=files)


def _builtin_page(path: str) -> BuiltinPage:
    page = str(_page_of(path))
    name = f"/{INDEX}" if page == "/" else page
    if name not in BUILTIN_PAGES:
        known = ", ".join(each.path for each in BUILTIN_LOADS.values())
        raise UsageError(
            f"load.path: {path}: the built-in content has no such page. Request {known}, or give "
            "the document root with this page as `content:`."
        )
    return BUILTIN_PAGES[name]()


def _open_root(content: str, base: Path | None) -> Path:
    """Return the document root; it must be readable."""
    root = ((base or Path()) / Path(content).expanduser()).resolve()
    if not root.exists():
        raise UsageError(
            f"content: {content}: the directory does not exist. Give a document root, or `{BUILTIN}`."
        )
    if not root.is_dir():
        raise UsageError(f"content: {content} is not a directory. Give the directory that holds this file.")
    if not os.access(root, os.R_OK | os.X_OK):
        raise UsageError(f"content: {content} cannot be read. Allow it with: chmod o+rx {root}")
    return root


def _length(root: Path, page: PurePosixPath, content: str) -> int | None:
    """Return the length of the correct body, or None where a program may answer for what is no file."""
    asked = root / str(page).lstrip("/")
    file = asked / INDEX if asked.is_dir() else asked
    if file.suffix.lower() in DYNAMIC_SUFFIXES:
        return None
    if not file.is_file():
        if asked.is_dir() or not asked.suffix:
            return None
        raise UsageError(f"load.path: {page}: {content} has no such file. Correct the path, or the content.")
    if not os.access(file, os.R_OK):
        raise UsageError(f"load.path: {page}: {file} cannot be read. Allow it with: chmod o+r {file}")
    return file.stat().st_size
