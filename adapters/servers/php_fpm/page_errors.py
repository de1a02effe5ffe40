"""Find the errors of PHP in the pages that it makes, and in the logs of the servers before it.

A page of a failed program has status 200 when `display_errors` is on, or when something was sent before it
failed (main/main.c, php_error_cb). php.ini logs errors by default; the web server writes them to its own log.
"""

import re

_KINDS = r"(?:PHP )?((?:Fatal|Parse|Recoverable fatal) error|Warning)"
_IN_PAGE = re.compile(
    rf"(?:<b>)?{_KINDS}(?:</b>)?:\s+(.{{1,300}}?) in (?:<b>)?(/.*?)(?:</b>)?(?: on line (?:<b>)?|:)(\d+)"
)
# A warning is logged by many a page that is right.
_IN_LOG = re.compile(
    r"PHP ((?:Fatal|Parse|Recoverable fatal) error): +(.{1,300}?) in (\S+?)(?: on line |:)(\d+)"
)
_NO_CLASS = re.compile(r"Class [\"\\]*(\w+)[\"\\]* not found")
_PACKAGES = {"SQLite3": "php-sqlite3", "PDO": "php-common", "mysqli": "php-mysql", "Redis": "php-redis"}
"""Class → Debian package of the extension that has it."""


def find_page_errors(page: bytes, log: bytes) -> tuple[str, ...]:
    """Return one sentence for each error, each once; with the package of an extension that is missing."""
    found = (*_IN_PAGE.findall(_text(page)), *_IN_LOG.findall(_text(log)))
    return tuple(dict.fromkeys(_describe(*each) for each in found))


def _text(output: bytes) -> str:
    return output.decode(errors="replace")


def _describe(kind: str, message: str, file: str, line: str) -> str:
    missing = _NO_CLASS.search(message)
    package = _PACKAGES.get(missing[1], "") if missing else ""
    remedy = f" (apt-get install {package})" if package else ""
    return f"{kind}: {message.strip()} in {file} on line {line}{remedy}"
