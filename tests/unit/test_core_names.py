"""The core knows no server and no load generator: no name of one stands in its code."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

TUNER = Path(__file__).parents[2] / "tuner"
NAMES = (
    "nginx", "apache", "apache2", "apachectl", "a2enconf", "httpd", "h2o", "php-fpm", "lighttpd",
    "caddy", "haproxy", "envoy", "varnish", "wrk", "wrk2", "ab", "h2load", "oha", "k6", "hey", "vegeta",
)  # fmt: skip
"""Of adapters that there are and others that there might be. `sysctl` is none: sysctl.d(5) is a format of the
kernel's settings, and sysctl(8) the command that loads it."""
NAME = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(sorted(NAMES, key=len, reverse=True))})(?![A-Za-z0-9])", re.IGNORECASE
)
OUTSIDE = {"adapters", "search_spaces", "testing"}
ALLOWED: Mapping[str, set[str]] = {
    # A study that names no generator has to get some; its keys have examples.
    "study/schema.py": {"h2load", "nginx", "php-fpm", "wrk"},
    # Help texts with examples; finding out what is registered would double the time of `tuner --help`.
    "cli/init_command.py": {"apache", "h2o", "nginx", "php-fpm"},
    # Part of the generators' adapters: remedies name those that can do what the others cannot.
    "kit/load_command.py": {"ab", "h2load", "k6", "oha", "vegeta", "wrk"},
}


def find_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names in identifiers and in strings that are no docstrings."""
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            words = value if isinstance(value, list) else [value]
            if id(node) not in described:
                yield from (
                    found.lower()
                    for word in words
                    if isinstance(word, str)
                    for found in NAME.findall(re.sub("(?<=[a-z])(?=[A-Z])|_", "-", word))
                )


def find_in_core() -> dict[str, set[str]]:
    """Return the names that the core's code has, by module."""
    found = {
        str(path.relative_to(TUNER)): set(find_names(ast.parse(path.read_text())))
        for path in sorted(TUNER.rglob("*.py"))
        if path.relative_to(TUNER).parts[0] not in OUTSIDE
    }
    return {module: names for module, names in found.items() if names}


def test_no_server_and_no_load_generator_is_named_in_the_code_of_the_core():
    assert find_in_core() == ALLOWED


def test_names_are_found_in_strings_and_identifiers_and_not_in_docstrings_and_comments():
    code = '''
"""A page of nginx."""
import tuner.export.apache  # as httpd
class MakeWrk:
    port: int = 80
    """As apache2 has it."""
def php_fpm(ab=1): return f"use {ab} or h2o" == "alphabet"
'''
    assert sorted(find_names(ast.parse(code))) == ["ab", "ab", "apache", "h2o", "php-fpm", "wrk"]
