"""Adds the sentence below each field to the docstring of its class: Python keeps it in the source alone."""

import ast
import inspect
from dataclasses import is_dataclass

HEAD = "\n\nFields:"


def add_field_help(public: type) -> None:
    """Let `help()` of a public class show its fields; once, and not where its source is not at hand."""
    told = public.__doc__ or ""
    if is_dataclass(public) and HEAD not in told:
        try:
            public.__doc__ = "".join((told, HEAD, *map(_show, read_fields(public).items())))
        except (OSError, TypeError):  # compiled files alone
            return


def read_fields(described: type) -> dict[str, str]:
    """Return each field of a dataclass with its sentence, which is empty where there is none."""
    (body,) = ast.parse(inspect.getsource(described)).body
    fields: dict[str, str] = {}
    last = ""
    for each in getattr(body, "body", ()):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            last = each.target.id
            fields[last] = ""
        elif last and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            fields[last], last = inspect.cleandoc(str(each.value.value)), ""
    return {name: said for name, said in fields.items() if not name.startswith("_")}


def _show(field: tuple[str, str]) -> str:
    name, said = field
    return f"\n    {name}: {' '.join(said.split())}"
