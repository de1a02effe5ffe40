"""What a winner makes of a host's files, as JSON values: an export needs no host that is gone by then."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from tuner.export.rendered import Rendered
from tuner.export.rewritten import Rewritten

_FORMS: Mapping[str, TypeAdapter[Any]] = {
    "rewritten": TypeAdapter(Rewritten),
    "rendered": TypeAdapter(Rendered),
}


def differences_to_json(differences: Mapping[str, Rendered | Rewritten]) -> dict[str, Any]:
    """Return what each server's files become, as JSON values."""
    return {
        server: {kind: _FORMS[kind].dump_python(each, mode="json")}
        for server, each in differences.items()
        for kind in ("rewritten" if isinstance(each, Rewritten) else "rendered",)
    }


def differences_from_json(data: Mapping[str, Any]) -> dict[str, Rendered | Rewritten]:
    """Read what `differences_to_json` wrote."""
    return {
        server: _FORMS[kind].validate_python(found)
        for server, each in data.items()
        for kind, found in each.items()
    }
