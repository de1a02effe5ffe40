"""Prints the copyright file of the Debian package: who made each package in it, and under which license.

Usage: ENVIRONMENT/bin/python .ci/debian/copyright.py BILL FOLDER

FOLDER is where they are installed. The licenses' names come from their metadata; the texts, and who holds the
rights, from their license files.
The format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
"""

import re
import sys
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from bundle import distributions_of, files_of

FORMAT = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: tuner\n"
LICENSE_FILE = re.compile(r"(licen[cs]e|copying)", re.IGNORECASE)
HOLDER = re.compile(r"^[\s*#]*Copyright\s+(?:\([Cc]\)\s+(?!<)|(?=\d|[A-Z]))(\S.*?)[\s*]*$", re.MULTILINE)
SHORT_NAMES = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
}
"""What a license is called in classifiers and in free text → its short name."""
COMMON = {
    "Apache License": "Apache-2.0",
    "GNU GENERAL PUBLIC LICENSE": "GPL-3",
    "GNU LESSER GENERAL PUBLIC LICENSE": "LGPL-2.1",
}
"""Heading of a license whose text every Debian system has → the name of its file there."""
COMMON_TEXT = re.compile(
    rf"^[ \t]*({'|'.join(COMMON)})$.*?(?:END OF TERMS AND CONDITIONS|\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Under which terms a package comes."""

    license: str
    text: str
    holders: tuple[str, ...]


def read_terms(package: Distribution) -> Terms:
    """Read the terms of a package; one that tells none is not to be passed on."""
    name, text = name_license(package), read_text(package)
    if not name or not text:
        sys.exit(f"copyright: {package.name} does not say under which license it comes. Ask its authors.")
    named = package.metadata.get("Author") or package.metadata.get(
        "Author-email", f"the authors of {package.name}"
    )
    return Terms(license=name, text=text, holders=tuple(dict.fromkeys(HOLDER.findall(text))) or (named,))


def name_license(package: Distribution) -> str:
    """Return the short name of a package's license, by the newest kind of metadata that it has."""
    metadata = package.metadata
    classifiers = [
        each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier", []) if "License ::" in each
    ]
    free_text = metadata.get("License", "").splitlines()
    told = metadata.get("License-Expression") or (
        free_text[0] if len(free_text) == 1 else "".join(classifiers[:1])
    )
    return SHORT_NAMES.get(told, told).replace(" AND ", " and ").replace(" OR ", " or ")


def read_text(package: Distribution) -> str:
    """Read the license files of a package, and name the file of what every Debian system has."""
    texts = [
        Path(str(file.locate())).read_text(encoding="utf-8")
        for file in package.files or ()
        if file.parts[0].endswith(".dist-info") and LICENSE_FILE.match(file.name)
    ]
    return COMMON_TEXT.sub(
        lambda found: f"{found[1]}: the text is in /usr/share/common-licenses/{COMMON[found[1]]}.",
        "\n\n".join(texts),
    )


def describe(package: Distribution, files: list[str]) -> str:
    """Return the paragraph of a package."""
    terms = read_terms(package)
    text = "\n".join(f" {line.rstrip() or '.'}" for line in terms.text.strip().splitlines())
    fields = {
        "Files": "\n ".join(files),
        "Copyright": "\n ".join(terms.holders),
        "License": f"{terms.license}\n{text}",
    }
    return "".join(f"\n{name}: {value}" for name, value in fields.items()) + "\n"


def places_of(package: Distribution, folder: str) -> list[str]:
    """Return what a package has in the folder that all are installed in, as patterns."""
    return sorted({f"{folder}/{file.parts[0]}{'/*' if file.parts[1:] else ''}" for file in files_of(package)})


if __name__ == "__main__":
    own, *bundled = distributions_of(Path(sys.argv[1]))
    paragraphs = [describe(own, ["*"]), *(describe(each, places_of(each, sys.argv[2])) for each in bundled)]
    sys.stdout.write(FORMAT + "".join(paragraphs))
