"""Every noun that names a module or a public class has its sentence in docs/glossary.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENTRY = re.compile(r"^\| ([^|]+?) +\| (.+?) +\|$", re.MULTILINE)
OF_EVERY_STUDY = {"goodput", "incumbent", "winner", "capacity", "trial"}
WORDS = re.compile(r"[A-Z]+(?![a-z0-9])|[A-Z][a-z0-9]*|[a-z0-9]+")


def entries() -> dict[str, str]:
    """Return the glossary: what is explained, in the singular or plural as it stands, and how."""
    text = (ROOT / "docs/glossary.md").read_text()
    found = [(name.strip(), told) for names, told in ENTRY.findall(text) for name in names.split(",")]
    return {name: told for name, told in found if name != "noun" and not name.startswith("-")}


def named() -> Iterator[tuple[str, str]]:
    """Yield every module and public class: its words in lower case, and where it is."""
    for top in ("tuner", "adapters"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if any(folder.is_symlink() for folder in path.parents) or path.stem == "__main__":
                continue
            place = str(path.relative_to(ROOT))
            stem = path.parent.name if path.stem == "__init__" else path.stem
            yield words(stem), place
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield words(node.name), f"{place}: {node.name}"


def words(name: str) -> str:
    """Split CamelCase and snake_case."""
    return " ".join(WORDS.findall(name)).lower()


def is_explained(noun: str, explained: set[str]) -> bool:
    """Check for the whole noun, or its end: `load target` is a target."""
    return any(form in explained for end in ends(noun) for form in forms(end))


def ends(noun: str) -> list[str]:
    """Return a noun with ever fewer words before its last one."""
    parts = noun.split(" ")
    return [" ".join(parts[number:]) for number in range(len(parts))]


def forms(noun: str) -> tuple[str, ...]:
    """Return a noun in singular and plural."""
    singular = noun.removesuffix("ies") + "y" if noun.endswith("ies") else noun.removesuffix("s")
    return (noun, singular, f"{noun}s", noun.removesuffix("y") + "ies", f"{noun}es", noun.removesuffix("es"))


def test_every_noun_that_names_a_module_or_a_class_has_an_entry():
    explained = {name.lower() for name in entries()}

    assert [f"{noun} ({place})" for noun, place in named() if not is_explained(noun, explained)] == []


def test_every_entry_explains_a_module_a_class_or_a_word_of_every_study():
    explained = {end for noun, _ in named() for whole in ends(noun) for end in forms(whole)}

    assert [name for name in entries() if name.lower() not in explained | OF_EVERY_STUDY] == []


def test_entries_are_sentences_in_order_and_none_is_there_twice():
    text = (ROOT / "docs/glossary.md").read_text()
    for table in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        first = [names.split(",")[0].strip().lower() for names, _ in ENTRY.findall(table)]
        first = [name for name in first if name != "noun" and not name.startswith("-")]
        assert first == sorted(first)
    assert all(told.endswith(".") for told in entries().values())
    names = [name.strip().lower() for group, _ in ENTRY.findall(text) for name in group.split(",")]
    assert [name for name in names if names.count(name) > 1 and name != "noun" and set(name) != {"-"}] == []
