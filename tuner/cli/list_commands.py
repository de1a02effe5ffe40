"""The commands that list what there is: search spaces, built-in contents and adapters."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tuner.cli import names
from tuner.cli.arguments import AsJson, read_study
from tuner.cli.printing import make_console, print_files, print_json, print_text
from tuner.errors import UsageError


def spaces(
    name: Annotated[
        str | None,
        typer.Argument(help="Search space to show (default: the names of all).", autocompletion=names.spaces),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study", help="Study file: show the settings that it tunes or leaves out, with reasons."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List search spaces, or the settings of one with range, default and reason.

    Example: `tuner spaces nginx`
    """
    from tuner.space import describe_space, describe_spaces

    if study is not None:
        _list_searched(study, name, as_json=as_json)
        return
    rows: list[dict[str, Any]] = [*describe_spaces()] if name is None else describe_space(name)
    if as_json:
        print_json(rows)
    elif name is None:
        print("\n".join(row["name"] for row in rows))
    else:
        from tuner.report.terminal import parameter_list
        from tuner.space import describe_dead, describe_presets

        make_console().print(parameter_list(rows, describe_dead(name), describe_presets(name)))


def _list_searched(study: Path, name: str | None, *, as_json: bool) -> None:
    """Print what a study searches and what not."""
    if name is not None:
        raise UsageError(f"--study: {study} names its own search spaces. Leave out {name!r}.")
    settings = read_study(study)
    from tuner.campaign.prepare import prepare
    from tuner.report.terminal import searched_list
    from tuner.space import describe_searched

    found = describe_searched(prepare(settings).space)
    print_json(found) if as_json else make_console().print(searched_list(settings.describe_load(), found))


def loads(as_json: AsJson = False) -> None:
    """List the built-in contents that a load can request.

    Example: `tuner loads`
    """
    from tuner.study.loads.builtin_loads import BUILTIN_LOADS

    found = BUILTIN_LOADS.values()
    if as_json:
        print_json(
            [
                {
                    "name": each.name, "kind": "mix" if each.requests else "page", "default": each.path,
                    "why": each.why, "source": "tuner", "title": each.title,
                    "paths": [kind.path for kind in each.requests] or [each.path],
                }
                for each in found
            ]
        )  # fmt: skip
    else:
        print_text("\n".join(f"{each.name:<7} {each.title}\n        {each.why}" for each in found))
        print_text(
            "In a study: `load: {content: NAME}`; for a new study: `tuner init SERVER --content NAME`."
        )


def studies(as_json: AsJson = False) -> None:
    """List the built-in studies, which repeat published experiments.

    Example: `tuner studies`
    """
    from tuner.study.named_studies import load_named

    found = load_named()
    if as_json:
        print_json(
            [
                {
                    "name": each.name, "title": each.title, "source": each.source,
                    "servers": list(each.servers), "load": each.load.describe(),
                }
                for each in found
            ]
        )  # fmt: skip
        return
    from tuner.report.terminal import study_list

    make_console().print(study_list(found))


class FileKind(StrEnum):
    """A kind of file that users write."""

    STUDY = "study"
    SPACE = "space"


def schema(
    kind: Annotated[FileKind, typer.Argument(help="Kind of file.")] = FileKind.STUDY,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write (default: the screen).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema with which editors complete and check study files.

    Example: `tuner schema study -o study.schema.json`
    """
    from tuner.commands.template import write_new
    from tuner.space.schema import json_schema as space_schema
    from tuner.study.schema import json_schema as study_schema

    found = study_schema() if kind is FileKind.STUDY else space_schema()
    if output is None:  # it is JSON in any case
        print_json(found)
        return
    print_files([write_new(output, f"{json.dumps(found, indent=1)}\n")], as_json=as_json)


def adapters(as_json: AsJson = False) -> None:
    """List the hosts, servers and load generators that tuner knows.

    Example: `tuner adapters`
    """
    from dataclasses import asdict

    from tuner.plugins import list_adapters

    found = list_adapters()
    if as_json:
        print_json(
            [
                asdict(adapter)
                | {
                    "kind": adapter.kind.value, "default": "", "why": adapter.summary,
                    "source": adapter.distribution,
                }
                for adapter in found
            ]
        )  # fmt: skip
    else:
        for adapter in found:
            print_text(f"{adapter.kind.value:<15} {adapter.name:<14} {adapter.summary}")
