"""Adds finished studies to a corpus, and proposes hints from one in a new study file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner import __version__
from tuner.campaign.prepare import prepare
from tuner.campaign.stages.confirm import read_gain
from tuner.commands.session import has_verdict
from tuner.corpus.collect import collect, describe_surroundings
from tuner.corpus.corpus_study import CorpusStudy
from tuner.corpus.files import read_corpus, write_corpus_study
from tuner.corpus.proposals import Alike, HintProposal, find_alike, propose
from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.records import Metric
from tuner.report.corpus import describe_gain, describe_studies
from tuner.shell_words import write_command
from tuner.space import facts_from_json, load_space
from tuner.study import Study, load_study
from tuner.study.facts import CONFIRMATION, FINGERPRINT, SPACE_FACTS
from tuner.study.folder import put_in_place, require_own, translated
from tuner.study.open_storage import open_storage

SPACE = "\nspace:\n"
MOST_NAMED = 5
"""Studies that are named beside a hint."""


def add_study(settings: Study, corpus: Path) -> Path:
    """Add a finished study to a corpus, in place of what was there of it; return the file.

    Raises:
        UsageError: the study is not finished, or not this user's.
        TargetError: the corpus cannot be written.
    """
    require_own(settings.folder)
    storage = open_storage(settings.storage_url, settings.name, create=False)
    facts, fingerprint = storage.recall(SPACE_FACTS), storage.recall(FINGERPRINT)
    if not has_verdict(storage) or facts is None or fingerprint is None:
        raise UsageError(
            f"{settings.path}: this study is not finished, so its results are not final. Finish the "
            f"study: {write_command('tuner', 'run', settings.path)}"
        )
    space = load_space(settings.space, facts=facts_from_json(facts), base=settings.path.parent)
    planned = storage.recall(CONFIRMATION)
    gain = read_gain(storage, storage.trials(), space.default(), settings.constraints)
    study = collect(
        settings, space, storage, fingerprint, facts,
        gain=gain, winner=planned.config if planned else None, version=__version__,
    )  # fmt: skip
    return write_corpus_study(study, corpus)


def list_corpus(corpus: Path) -> tuple[CorpusStudy, ...]:
    """Return every study of a corpus. Raises as `read_corpus` does."""
    return read_corpus(corpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a corpus proposes for a new study."""

    corpus: Path
    studies: int
    """Of the corpus."""
    alike: tuple[Alike, ...]
    proposals: tuple[HintProposal, ...]

    def as_text(self) -> str:
        """Return in a sentence what was proposed, or why nothing was."""
        told = f"{self.corpus}: {len(self.alike)} of its {self.studies} studies are of similar hosts"
        if not self.proposals:
            return f"{told}; the evidence is too weak, so no hints are written."
        names = ", ".join(each.parameter for each in self.proposals)
        return f"{told}; hints written for {names}. Delete hints that you doubt."

    def as_json(self) -> dict[str, Any]:
        """Return the same for scripts."""
        return {
            "corpus": str(self.corpus), "studies": self.studies, "alike": len(self.alike),
            "hints": [
                {
                    "parameter": each.parameter, "value": each.value, "odds": each.odds,
                    "log_gain": each.gain.mean, "interval": list(each.gain.interval),
                    "studies": [{"study": one.study.id, "likeness": one.likeness} for one in each.known],
                }
                for each in self.proposals
            ],
        }  # fmt: skip


def advise(path: Path, corpus: Path) -> Advice:
    """Add the hints that a corpus proposes to the file of a new study, each with its evidence.

    Raises:
        UsageError: the corpus holds a file that is none of a corpus.
        TargetError: something is missing that the study needs, or the file cannot be written.
    """
    studies = read_corpus(corpus)
    setup = prepare(load_study(path))
    here = describe_surroundings(setup.fingerprint, setup.space_facts)
    alike = find_alike(studies, here, Metric.GOODPUT, setup.space)
    advice = Advice(
        corpus=corpus,
        studies=len(studies),
        alike=tuple(alike),
        proposals=tuple(propose(alike, setup.space)),
    )
    if advice.proposals:
        text = insert_lines(path.read_text(encoding="utf-8"), _write_hints(advice))
        with translated(path, "written"):
            put_in_place(path, text.encode())
    return advice


def insert_lines(text: str, lines: Sequence[str]) -> str:
    """Insert lines into a study file behind the last entry of the list of spaces."""
    head, space, rest = text.partition(SPACE)
    entries, blank, tail = rest.partition("\n\n")
    return "".join((head, space, entries, "\n", "\n".join(lines), blank, tail))


def _write_hints(advice: Advice) -> list[str]:
    """Return the entry of the list of spaces that holds the hints, each below its evidence."""
    lines = [
        f"  # Hints from {describe_studies(advice.alike)}, found in {_in_comment(advice.corpus)}.",
        "  # The search prefers hinted values, and measurements overrule hints. Delete hints that you doubt.",
        "  - hints:",
    ]
    for each in advice.proposals:
        lines += _write_hint(each)
    return lines


def _write_hint(proposal: HintProposal) -> list[str]:
    """Return one hint with its evidence: which studies, how alike, which gain, how sure."""
    gain, known = describe_gain(proposal.gain.mean, *proposal.gain.interval), proposal.known
    named = ", ".join(each.study.id for each in known[:MOST_NAMED])
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    spread = f"the effect varies between hosts by {proposal.gain.spread:.0%}"
    likenesses = f"likeness {known[-1].likeness:.2f} to {known[0].likeness:.2f}"
    source = f"{describe_studies(known)}: {gain}"
    fields = f"value: {write_value(proposal.value)}, odds: {proposal.odds}, source: {json.dumps(source)}"
    return [
        f"      # {gain} from this setting alone; {spread}.",
        f"      # Studies {named}{more}, {likenesses}.",
        f"      {json.dumps(proposal.parameter)}: {{{fields}}}",
    ]


def write_value(value: Scalar) -> str:
    """Return a value as YAML has it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return json.dumps(value)


def _in_comment(path: Path) -> str:
    """Return a path as it may stand in a comment: on one line."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(path))
