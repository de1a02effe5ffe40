"""The folder of a corpus: one small JSON file for each study, written whole and read with suspicion."""

import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tuner.corpus.corpus_study import VERSION, CorpusStudy
from tuner.errors import TargetError, UsageError
from tuner.shell_words import write_command
from tuner.space.problems import problem, quote
from tuner.study.folder import put_in_place

SUFFIX = ".json"
LARGEST_FILE_BYTES = 2 * 2**20
MOST_FILES = 2000
MOST_BYTES = 256 * 2**20
"""Of all files together, which are in memory at once."""
LONGEST_NAME = 100
"""Of what was tuned, in the name of a file."""
REMOVE = "Remove the file, or copy the file again from its source"
_FORM = TypeAdapter(CorpusStudy)


def find_corpus() -> Path:
    """Return the folder of this user's own corpus (TUNER_CORPUS, or by the XDG Base Directory rules)."""
    if asked := os.environ.get("TUNER_CORPUS"):
        return Path(asked)
    data = os.environ.get("XDG_DATA_HOME", "")
    # Relative values are to be ignored (XDG Base Directory Specification).
    return (Path(data) if data.startswith("/") else Path.home() / ".local/share") / "tuner" / "corpus"


def name_file(study: CorpusStudy) -> str:
    """Return the name of a study's file: what was tuned, and which study it is."""
    return f"{'-'.join(study.surroundings.servers)[:LONGEST_NAME]}-{study.id}{SUFFIX}"


def write_corpus_study(study: CorpusStudy, corpus: Path) -> Path:
    """Write a study into a corpus, in place of what was there of it; the folder is made where it is missing.

    Raises:
        UsageError: it is larger than what is read, or holds what no corpus holds.
        TargetError: it cannot be written.
    """
    path = corpus / name_file(study)
    content = _FORM.dump_json(study, indent=1) + b"\n"
    parse_corpus_study(content, str(path))
    try:
        corpus.mkdir(parents=True, exist_ok=True)
        put_in_place(path, content)
    except OSError as error:
        raise TargetError(
            f"{path}: cannot be written ({error.strerror}). Name another folder with --corpus."
        ) from error
    return path


def read_corpus(corpus: Path) -> tuple[CorpusStudy, ...]:
    """Read every study of a corpus, by name of file.

    Raises:
        UsageError: there is no such folder, it has too many files, or one of them is none of a corpus.
        TargetError: the folder cannot be read.
    """
    try:
        paths = sorted(path for path in corpus.iterdir() if _is_of_corpus(path))
        total = sum(path.lstat().st_size for path in paths)
    except (FileNotFoundError, NotADirectoryError) as error:
        make = write_command("tuner", "corpus", "add", "STUDY", "--corpus", corpus)
        raise problem(str(corpus), "the corpus does not exist", f"Make this corpus: {make}") from error
    except OSError as error:
        raise TargetError(f"{corpus}: cannot be read ({error.strerror}). Check its permissions.") from error
    if len(paths) > MOST_FILES or total > MOST_BYTES:
        wrong = (
            f"the folder has {len(paths)} files of {total / 2**20:.0f} MiB in all, more than tuner reads "
            "at once"
        )
        raise problem(str(corpus), wrong, "Move the files of other servers to another folder")
    return tuple(map(read_corpus_study, paths))


def _is_of_corpus(path: Path) -> bool:
    """Return whether a file may be a study; hidden is what was being written when its tuner was killed."""
    return path.suffix == SUFFIX and not path.name.startswith(".")


def read_corpus_study(path: Path) -> CorpusStudy:
    """Read one file. Raises UsageError that names it and says what to do."""
    try:
        if not path.is_file():  # a pipe or device would be read without end
            raise problem(str(path), "the entry is no regular file", REMOVE)
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise problem(str(path), f"cannot be read ({error.strerror})", REMOVE) from error
    return parse_corpus_study(content, str(path))


def parse_corpus_study(content: bytes, where: str) -> CorpusStudy:
    """Return the study that a file holds. Raises UsageError."""
    if len(content) > LARGEST_FILE_BYTES:
        wrong = (
            f"the file is larger than {LARGEST_FILE_BYTES // 2**20} MiB, and no study of a corpus is so large"
        )
        raise problem(where, wrong, REMOVE)
    try:
        return _FORM.validate_json(content)
    except ValidationError as error:
        raise _explain(error, where) from error


def _explain(error: ValidationError, where: str) -> UsageError:
    """Return the first fault: of another version than ours that, whatever else there is."""
    faults = error.errors(include_url=False, include_context=False)
    fault = next((each for each in faults if each["loc"] == ("version",)), faults[0])
    place = ".".join(str(part)[:40] for part in fault["loc"])
    if place == "version":
        wrong = f"the file has version {quote(fault['input'])} of the format, and this tuner reads {VERSION}"
        return problem(where, wrong, "Use the tuner that wrote the file, or add the study again")
    shown = "" if fault["type"] in {"missing", "json_invalid"} else f", not {quote(fault['input'])}"
    said = fault["msg"].rstrip(".")
    return problem(f"{where}: {place}" if place else where, f"{said}{shown}", REMOVE)
