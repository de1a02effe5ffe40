"""Colours of the page: readable in both schemes by WCAG 2.2, 1.4.3 and 1.4.11 (level AA)."""

import re
from itertools import product
from pathlib import Path

import pytest

import tuner.report
from tuner.report.figures.theme import COLOURS

STYLE = (Path(tuner.report.__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
TEXT = ("ink", "soft", "good", "bad", "open", "blue", "grey", "amber")
"""Everything in which words are written; `pale` and `edge` are for lines and points."""
GRAPHICS = ("pale", "edge")
TEXT_CONTRAST, GRAPHICS_CONTRAST = 4.5, 3.0


def luminance(colour: str) -> float:
    """Compute the relative luminance of a colour of the form #rrggbb."""
    channels = (int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5))
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("name", "ground"), list(product(TEXT, ("paper", "tint"))))
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_is_readable(name: str, ground: str, scheme: int) -> None:
    assert contrast(COLOURS[name][scheme], COLOURS[ground][scheme]) >= TEXT_CONTRAST


@pytest.mark.parametrize("name", GRAPHICS)
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_points_and_lines_can_be_seen(name: str, scheme: int) -> None:
    assert contrast(COLOURS[name][scheme], COLOURS["paper"][scheme]) >= GRAPHICS_CONTRAST


def test_the_measure_is_the_standards_own() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_every_colour_comes_from_the_palette() -> None:
    assert {*COLOURS} == {*TEXT, *GRAPHICS, "paper", "tint", "rule"}
    assert len({light for light, _ in COLOURS.values()}) == len(COLOURS)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", STYLE) == []
    assert {*re.findall(r"var\(--([\w-]+)\)", STYLE)} <= {*COLOURS}
