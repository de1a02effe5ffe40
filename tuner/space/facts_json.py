"""The facts of a host as JSON and back: a study is read again where its host cannot be reached."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tuner.space.parameters import SpaceFacts


def facts_to_json(facts: SpaceFacts, paths: Mapping[str, bool]) -> dict[str, Any]:
    """Give facts as JSON values.

    Args:
        facts: of the host.
        paths: what `facts.exists` has answered, by path.
    """
    kept = {each.name: getattr(facts, each.name) for each in fields(facts) if each.name != "exists"}
    return {**kept, "exists": dict(paths)}


def facts_from_json(data: Mapping[str, Any]) -> SpaceFacts:
    """Read facts; the inverse of `facts_to_json`. A path that nobody asked for counts as one that exists."""
    paths = data["exists"]
    versions = {server: tuple(version) for server, version in data["versions"].items()}
    return SpaceFacts(**{**data, "versions": versions, "exists": lambda path: paths.get(path, True)})
