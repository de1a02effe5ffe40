"""A study has one gain: every surface of drawn studies has the same figures, and the table gives them."""

import json
import re
from io import StringIO
from random import Random

import pytest
from rich.console import Console

from tests.more import leave_to_more
from tests.unit.export.test_host_change import of_nginx
from tests.unit.simulated_study import make_summary, small_space
from tests.unit.simulation import make_setup, write_study
from tuner.commands.page import make_page
from tuner.commands.session import Reading
from tuner.export import export
from tuner.export.formats import FORMATS
from tuner.report.explanation.screen import explain_screen
from tuner.report.summary_json import summary_json
from tuner.report.terminal import final_screen
from tuner.report.wording import say_estimate

WINNING = {
    "sendfile": False, "open_file_cache": 2000, "keepalive_requests": 100_000, "worker_processes": 1,
    "aio": "threads",
}  # fmt: skip
OF_PAIRS = re.compile(r"([\d.,]+× \[\S+, \S+\])(?:, | \(| from )\d+ pairs?")
"""A gain is said with the number of its pairs; an effect of a setting is not."""
ALL_OF_THEM = re.compile(r"all of them +(\S+× \[\S+, \S+\])")
OF_A_SIDE = re.compile(r"^(default|winner) +([\d,]+) ", re.MULTILINE)


def draw(seed, settings):
    names = Random(seed).sample([*WINNING], 2 + seed % 4)  # noqa: S311 - no secret
    summary = make_summary(searches=12, winning={name: WINNING[name] for name in names}, seed=seed)
    setup = make_setup(settings, small_space())
    return Reading(settings=settings, space=setup.space, summary=summary, setup=setup)


def on_terminal(renderable):
    console = Console(file=StringIO(), width=200)
    console.print(renderable)
    return console.file.getvalue()


@pytest.mark.parametrize("seed", leave_to_more(range(10), 0, 1))
def test_a_gain_is_the_same_on_every_surface(seed, tmp_path):
    reading = draw(seed, write_study(tmp_path))
    gain = say_estimate(reading.summary.gain)
    surfaces = {
        "terminal": on_terminal(final_screen(reading.summary)),
        "explain": on_terminal(explain_screen(reading.summary)),
        "page": make_page(reading).decode(),
        "show --json": json.dumps(summary_json(reading.summary)),
    }
    rendered = {"nginx": of_nginx(b"a 1;\n", b"a 2;\n")}
    for form in ("nginx", "json", *FORMATS):
        written = export(reading.summary, form, rendered=rendered).values()
        # Markdown escapes brackets, and JSON what is not ASCII.
        text = b"\n".join(written).decode().replace("\\u00d7", "×")
        surfaces[form] = text.replace("\\[", "[").replace("\\]", "]")

    said = {name: OF_PAIRS.findall(text) for name, text in surfaces.items()}
    assert {name: set(each) for name, each in said.items() if each} == {
        name: {gain} for name, each in said.items() if each
    }
    assert not {name for name, text in surfaces.items() if gain not in text} - {"show --json"}
    assert ALL_OF_THEM.findall(surfaces["explain"]) == [gain]
    told = json.loads(surfaces["show --json"])["gain"]
    assert f"{told['ratio']:.2f}× [{told['low']:.2f}, {told['high']:.2f}]" == gain


@pytest.mark.parametrize("seed", range(10))
def test_the_rates_of_both_sides_give_the_gain(seed):
    summary = make_summary(searches=6, seed=seed)

    sides = dict(OF_A_SIDE.findall(on_terminal(final_screen(summary))))

    default, winner = (float(sides[name].replace(",", "")) for name in ("default", "winner"))
    assert winner / default == pytest.approx(summary.gain.ratio, rel=1e-4)
