import pytest

from tuner.adapters.servers.php_fpm import find_page_errors
from tuner.testing.fakes import MemoryHost, completed

IN_HTML = b"""<p>A shop</p><br />
<b>Warning</b>:  SQLite3::query(): no such table: article in <b>/www/page.php</b> on line <b>3</b><br />
"""
IN_TEXT = b'PHP Fatal error:  Uncaught Error: Class "SQLite3" not found in /www/page.php:2\nStack trace:\n'
NGINX_LOG = (
    b'2026/11/23 11:00:00 [error] 7#7: *1 FastCGI sent in stderr: "PHP message: PHP Fatal error:  Uncaught '
    b'Error: Class "SQLite3" not found in /www/page.php:2" while reading response header from upstream\n'
)
APACHE_LOG = (
    b"[proxy_fcgi:error] [pid 1] AH01071: Got error 'PHP message: PHP Fatal error:  Allowed memory size of "
    b"134217728 bytes exhausted (tried to allocate 20480 bytes) in /www/page.php on line 9'\n"
)


NO_CLASS = 'Fatal error: Uncaught Error: Class "SQLite3" not found in /www/page.php on line 2'
NO_MEMORY = "Fatal error: Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes)"


@pytest.mark.parametrize(
    ("page", "log", "found"),
    [
        (IN_HTML, b"", "Warning: SQLite3::query(): no such table: article in /www/page.php on line 3"),
        (b"Parse error: unexpected end of file in /a b.php on line 12\n", b"",
         "Parse error: unexpected end of file in /a b.php on line 12"),
        (IN_TEXT, b"", f"{NO_CLASS} (apt-get install php-sqlite3)"),
        (b"", NGINX_LOG, f"{NO_CLASS} (apt-get install php-sqlite3)"),
        (b"", APACHE_LOG, f"{NO_MEMORY} in /www/page.php on line 9"),
    ],
)  # fmt: skip
def test_an_error_is_found_in_the_page_and_in_the_logs(page: bytes, log: bytes, found: str):
    assert find_page_errors(MemoryHost(), page, log) == (found,)


@pytest.mark.parametrize(
    ("page", "log"),
    [
        (b"<h1>Warning: wet paint in room 3</h1>", b""),
        (b"<p>A fatal error on line 3 was fixed</p>", b""),
        (b"", b"PHP message: PHP Warning:  Undefined variable $a in /www/page.php on line 3"),
        (b"", b"[error] directory index of /www/ is forbidden"),
    ],
)
def test_words_of_a_page_and_warnings_in_a_log_are_no_errors(page: bytes, log: bytes):
    assert find_page_errors(MemoryHost(), page, log) == ()


def test_the_package_of_an_extension_has_the_name_of_the_hosts_own_distribution():
    host = MemoryHost(commands={"sh": lambda _host, argv, _: completed(argv, stdout=b"/usr/bin/dnf\n")})

    assert find_page_errors(host, IN_TEXT, b"") == (f"{NO_CLASS} (dnf install php-pdo)",)


def test_the_same_error_of_many_requests_is_told_once():
    assert len(find_page_errors(MemoryHost(), b"", NGINX_LOG * 3)) == 1
