"""Files as an editor with a YAML language server sees them."""

from collections.abc import Mapping
from typing import Any

import jsonschema
import yaml


class AsAnEditorReads(yaml.SafeLoader):
    """YAML 1.2, as language servers read it: on, off, yes and no are texts."""


AsAnEditorReads.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tTfF"
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def find_faults(text: str, schema: Mapping[str, Any]) -> list[str]:
    """Return what an editor underlines, with the place of each."""
    document = yaml.load(text, Loader=AsAnEditorReads)  # noqa: S506 - derives from SafeLoader
    found = jsonschema.Draft202012Validator(schema).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in found]
