"""Any configuration is read as the real program reads it, which prints it (mod_info, DUMP_CONFIG)."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.more import examples
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.apache.installation import answer_questions
from tuner.adapters.servers.apache.syntax import Tree, read_directives

MODULES = ("mpm_event", "info", "status", "macro", "ldap")
STATIC = frozenset({"core", "so", "http", "log_config", "version", "unixd"})
NAMES = ("Timeout", "KeepAliveTimeout", "MaxKeepAliveRequests", "StartServers")
IN_DIRECTORIES = ("ReadBufferSize",)
OURS = frozenset(name.lower() for name in (*NAMES, *IN_DIRECTORIES))

numbers = st.integers(1, 9999)
quotes = st.sampled_from(["{}", '"{}"', "'{}'", "${{NINE}}"])
blanks = st.sampled_from([" ", "\t", "   ", " \\\n ", " \\\n\t\\\n"])
cases = st.sampled_from([str.lower, str.upper, str])


def directive(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda name, case, blank, quote, number: f"{case(name)}{blank}{quote.format(number)}\n",
        st.sampled_from(names), cases, blanks, quotes, numbers,
    )  # fmt: skip


conditions = st.sampled_from(
    [
        "IfModule status_module", "IfModule mod_status.c", "IfModule !mod_status.c", "IfModule event.c",
        "IfModule ssl_module", "IfModule !mod_ssl.c", "IfModule prefork.c", "IfModule http_core.c",
        "IfDefine NINE", "IfDefine !NINE", "IfDefine OTHER", "IfVersion >= 2.4", "IfVersion < 2.4",
        "IfModule mpm_event.c", "IfModule mod_status", "IfModule status", "IfModule util_ldap.c",
        "IfModule !mod_ldap.c", "IfModule ldap_module", 'IfModule "mod_status.c"', "IfModule ! Status_module",
        "IfFile /etc/passwd", "IfFile !/etc/passwd", "IfFile main.conf", "IfFile 'more'", "IfFile none",
        "IfDirective keepalive", "IfDirective !RewriteRule", "IfDirective <Directory",
        "IfDirective Directory", "IfSection directory", "IfSection !Proxy", "IfSection Macro",
        "IfVersion !< 2.4.2", "IfVersion > 2.4.99", "IfVersion 2.4", "IfVersion ~ ^2\\.4\\.[0-9]+$",
        "IfVersion !~ ^2", "IfVersion = /^2.4/", "IfVersion <= 3",
    ]
)  # fmt: skip
others = st.sampled_from(
    ["# a comment\n", "# goes on \\\nTimeout 1\n", "\n", "  \t\n", "Define OTHER 1\n", "UnDefine OTHER\n"]
)


def sections(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inside, max_size=4).map("".join)
    conditional = st.builds(
        lambda condition, case, text: f"<{case(condition.split()[0])} {condition.partition(' ')[2]}>\n{text}"
        f"</{condition.split()[0]}>\n",
        conditions, cases, body,
    )  # fmt: skip
    container = st.lists(directive(IN_DIRECTORIES), max_size=2).map(
        lambda lines: f"<Directory /srv>\n{''.join(lines)}</Directory>\n"
    )
    return conditional | container


blocks = st.recursive(directive(NAMES) | others, lambda inner: sections(directive(NAMES) | others | inner))
macros = st.builds(
    lambda name, body, number: f"<Macro {name} $x %xx>\n{body}Timeout %xx$x\n</Macro>\n"
    f"Use {name.upper()} {number} '{number}'\nUndefMacro {name}\n",
    st.sampled_from(["one", "Two"]), blocks, st.integers(1, 99),
)  # fmt: skip
texts = st.lists(blocks | macros, max_size=8).map("".join)
line_ends = st.sampled_from(["\n", "\r\n"])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("apache")
    (made / "more").mkdir()
    return made


@pytest.fixture(scope="module")
def version() -> tuple[int, ...]:
    return Apache().detect(LocalHost()).version


def dump(main: Path) -> list[tuple[str, str]]:
    """Let the program print the lines that count, and pick ours: lower-case name, value without quotes."""
    completed = LocalHost().run(("apache2", "-t", "-D", "DUMP_CONFIG", "-f", str(main)), timeout_s=20)
    assert completed.returncode == 0, completed.stderr.decode()
    lines = (line.split(None, 1) for line in completed.stdout.decode().splitlines())
    return [
        (words[0].lower(), words[1].strip("\"'")) for words in lines if words and words[0].lower() in OURS
    ]


@settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(main=texts, first=texts, second=texts, line_end=line_ends)
def test_what_counts_is_what_the_program_says(
    directory: Path, version: tuple[int, ...], main: str, first: str, second: str, line_end: str
):
    loads = (f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in MODULES)
    head = f"ServerRoot {directory}\nErrorLog {directory}/log\nServerName localhost\nDefine NINE 9\n"
    written = {
        directory / "main.conf": f"{head}{''.join(loads)}{main}IncludeOptional more/*.conf\n",
        directory / "more" / "b.conf": second,
        directory / "more" / "a.conf": first,
    }
    for path, text in written.items():
        path.write_bytes(text.replace("\n", line_end).encode())

    tree = Tree(
        files={PurePosixPath(path): path.read_bytes() for path in written},
        main=PurePosixPath(directory / "main.conf"),
        modules=frozenset({*MODULES, *STATIC}),
        version=version,
    )
    program = ("apache2", "-f", str(tree.main), "-L")
    tree = answer_questions(tree, LocalHost(), program)
    found = [(each.name, each.words[0]) for each in read_directives(tree) if each.name in OURS]

    assert found == dump(directory / "main.conf")
