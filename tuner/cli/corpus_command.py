"""The command that keeps what finished studies found, for studies on other hosts."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tuner.cli.arguments import AsJson, read_study
from tuner.cli.printing import print_files, print_json, print_text
from tuner.errors import UsageError


class Action(StrEnum):
    """What is done with a corpus."""

    ADD = "add"
    LIST = "list"


def corpus(
    action: Annotated[Action, typer.Argument(help="add finished studies, or list the entries.")],
    studies: Annotated[
        list[Path] | None, typer.Argument(metavar="[STUDY]...", help="Study files to add.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--corpus",
            metavar="DIR",
            help="Folder of the corpus (default: $TUNER_CORPUS, or one in your home).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store results of finished studies, without host names, as hints for new studies; or list them.

    Example: `tuner corpus add nginx.yaml`
    """
    if action is Action.ADD and not studies:
        raise UsageError("corpus add: no study is given. Name a study: tuner corpus add STUDY")
    if action is Action.LIST and studies:
        raise UsageError(
            f"corpus list: this command lists a whole corpus and takes no study. Leave {studies[0]} out."
        )
    settings = [read_study(path) for path in studies or ()]
    from tuner.commands.corpus import add_study, list_corpus
    from tuner.corpus.files import find_corpus
    from tuner.report.corpus import corpus_rows, corpus_text

    place = folder or find_corpus()
    if action is Action.ADD:
        print_files([add_study(each, place) for each in settings], as_json=as_json)
        return
    found = list_corpus(place)
    print_json(corpus_rows(found)) if as_json else print_text(corpus_text(found))
