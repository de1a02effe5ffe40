"""The documents name what is there: files, links, targets of make, spaces that load, messages of the code."""

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generate.session import draw
from tests.unit.simulated_study import make_summary
from tuner.report.summary_json import summary_json
from tuner.space import SpaceFacts, load_space
from tuner.space.yaml_text import read_yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TOP = r"(?:tuner|adapters|tests|benchmarks|docs|search_spaces|notebooks|requirements)"
PATH = re.compile(rf"`({TOP}(?:/[\w./-]+)?)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
FACTS = SpaceFacts(
    names={"cores": 2, "memory_mib": 4096, "connections": 100, "open_files_max": 65536, "somaxconn": 4096},
    versions={"nginx": (1, 22, 1)},
    current={},
    sandbox=True,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page: Path):
    text = page.read_text()
    named = {*PATH.findall(text)} if page.name != "CHANGELOG.md" else set()
    named |= {str((page.parent / link).resolve().relative_to(ROOT)) for link in LINK.findall(text)}

    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_target_of_make_that_a_page_names_is_there(page: Path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"`make ([a-z-]+)", page.read_text())) <= targets


def test_every_notebook_is_listed():
    page = (ROOT / "docs/python.md").read_text()
    notebooks = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))

    assert sorted(re.findall(r"\(\.\./notebooks/(\w+\.ipynb)\)", page)) == notebooks


def test_the_space_that_authors_begin_with_loads():
    (first, *_) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/spaces.md").read_text(), re.DOTALL)

    space = load_space([read_yaml(first.encode(), "small.yaml")], facts=FACTS, base=ROOT)

    assert [parameter.name for parameter in space.parameters] == [
        "worker_processes",
        "sendfile",
        "tcp_nopush",
    ]
    assert [preset.name for preset in space.presets] == ["plain"]


def read_messages() -> Iterator[str]:
    """Yield every text of the code, with … for what it fills in, and every script that people run."""
    for path in (path for folder in ("tuner", "adapters") for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (each.value if isinstance(each, ast.Constant) else "…" for each in node.values)
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    scripts = (*(ROOT / "tuner").rglob("*.sh"), *(ROOT / ".ci").glob("*"))
    for path in (each for each in scripts if each.is_file()):
        yield path.read_text().replace("\\`", "`")


def test_troubleshooting_is_about_messages_that_the_code_has():
    page = (ROOT / "docs/troubleshooting.md").read_text()
    headings = [said for _, said in re.findall(r"^### (`{1,2})(.+)\1$", page, re.MULTILINE)]
    known = "\n".join(read_messages())

    assert len(headings) >= 25
    assert len(set(re.findall(r'^<a id="([a-z-]+)"></a>$', page, re.MULTILINE))) == len(headings)
    longest = {heading: max(heading.split("…"), key=len).strip(" .:,(") for heading in headings}
    assert [heading for heading, part in longest.items() if part not in known] == []


def test_the_picture_of_a_session_has_all_that_was_printed_and_loads_nothing():
    picture = draw("tuner show nginx.yaml", "\x1b[32mnginx: 1.79×\x1b[0m  a < b\n")

    shown = html.unescape(re.sub(r"<[^>]*>", "", picture)).replace("\xa0", " ")
    for words in ("$ tuner show nginx.yaml", "nginx: 1.79×", "a < b"):
        assert words in shown
    assert re.search(r"@font-face|href|src|url\((?!#)", picture) is None


def test_the_page_of_the_json_output_names_every_key_of_a_study():
    named = set(re.findall(r"`(\w+)`", (ROOT / "docs/json-output.md").read_text()))
    shown = summary_json(make_summary())
    trial = shown["trials"][0]
    parts = (shown, trial, trial["windows"][0])
    parts += tuple(shown[key] for key in ("winner", "gain", "capacity", "noise", "explanation"))

    assert sorted({key for part in parts for key in part} - named) == []


WRITERS = {
    "compare": "report/summary_json.py report/contest/rows.py", "versus": "report/contest/rows.py",
    "sweep": "report/sweep/__init__.py", "curve": "report/curve/__init__.py",
    "verify": "report/regression/forms.py", "gate": "report/regression/forms.py",
    "check": "commands/check.py", "fleet": "report/fleet/__init__.py", "init": "cli/init_command.py",
    "advise": "report/advice.py", "apply": "cli/host_commands.py cli/printing.py",
    "restore": "cli/host_commands.py cli/printing.py",
}  # fmt: skip
"""Command → the modules that write its JSON."""


def _read(module: str) -> str:
    return (ROOT / "tuner" / module).read_text()


def _writes(text: str, key: str) -> bool:
    return key in WRITERS or re.search(rf'"{key}"|\b{key}=', text) is not None


def test_the_page_of_the_json_output_names_no_key_that_a_command_does_not_write():
    _, _, section = (ROOT / "docs/json-output.md").read_text().partition("## Other commands\n")
    rows = re.findall(r"^\| (`.+?) \| (`.+) \|$", section, re.MULTILINE)
    wrong = []
    for commands, keys in rows:
        known = {each.split()[0] for each in re.findall(r"`([^`]+)`", commands)} & WRITERS.keys()
        texts = ["".join(map(_read, WRITERS[command].split())) for command in known]
        first, *more = re.findall(r"`(\w+)`", keys)
        # The first key is of every command in the row; others may be of one.
        wrong += [f"{commands}: {first}" for text in texts if not _writes(text, first)]
        wrong += [f"{commands}: {key}" for key in more if not _writes("".join(texts), key)]

    assert len(rows) >= 8
    assert wrong == []


def test_the_first_screen_of_the_readme_has_at_most_45_lines():
    first, _, _ = (ROOT / "README.md").read_text().partition("\n## ")

    assert len(first.splitlines()) <= 45
