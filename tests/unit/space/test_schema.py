"""The published JSON Schema agrees with the code and with the files that name it."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.unit.editor import find_faults
from tests.unit.space.samples import WHOLE
from tuner.space import available_spaces
from tuner.space.schema import json_schema

FOLDER = Path(__file__).parents[3] / "search_spaces"


def faults(text: str) -> list[str]:
    return find_faults(text, json_schema())


def test_the_committed_schema_is_the_generated_one():
    committed = (FOLDER / "space.schema.json").read_text(encoding="utf-8")

    assert committed == json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n", (
        "write it again: python -m tuner.space.schema > search_spaces/space.schema.json"
    )


def test_it_is_a_valid_schema():
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_every_key_is_explained():
    schema = json_schema()
    models = [schema, *schema["$defs"].values()]

    assert [
        key for model in models for key, of in model["properties"].items() if "description" not in of
    ] == []


def test_it_accepts_a_space_that_uses_the_whole_language():
    assert faults(WHOLE) == []


@pytest.mark.parametrize("name", available_spaces())
def test_it_accepts_every_built_in_space(name):
    assert faults((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "paramters: {}",
        "parameters: {x: {kind: integer}}",
        "parameters: {x: {risk: deadly}}",
        "parameters: {x: {choices: a}}",
        "parameters: {x: {step: 0}}",
        "parameters: {two words: {kind: int}}",
        "presets: {p: {title: t}}",
        "constraints: [x < 3]",
        "only: x",
    ],
)
def test_it_refuses_what_the_loader_refuses(text):
    assert faults(text)
