"""A measured result in all the forms in which it is shown: screen, JSON, Markdown, CSV and page."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from tuner.report.rows import table_of_arms
from tuner.report.summary import Comparison
from tuner.report.tables import escape_markdown, join_markdown, markdown_list, markdown_table, write_arms_csv
from tuner.report.wording import capitalize, say_age, say_comparison, say_gain, say_lacks, say_tail, say_trend
from tuner.statistics.response_curve import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """How one result is shown; each form is made when it is asked for."""

    screen: Callable[[], RenderableType]
    as_json: Callable[[], dict[str, Any]]
    markdown: Callable[[], str]
    csv: Callable[[], str]
    page: Callable[[], str] | None = None
    """None where a result has no page."""

    def write_for(self, output: Path) -> str:
        """Return what a file with such a name holds: Markdown or CSV by its ending, else the page."""
        by_ending = {".md": self.markdown, ".csv": self.csv}
        return by_ending.get(output.suffix, self._whole_page if self.page else self.markdown)()

    def _whole_page(self) -> str:
        """Return the page with the script that draws its figures."""
        from tuner.report.markup import embed_script

        return embed_script(self.page() if self.page else "")


def comparison_markdown(comparison: Comparison, first: str, second: str) -> str:
    """Return the gain of the second over the first, and what both gave, as Markdown."""
    names = {"first": first, "second": second}
    gain = comparison.gain
    head, *rows = table_of_arms([(first, comparison.first), (second, comparison.second)])
    told = [f"under {name}: {say_gain(each)}, {each.verdict}" for name, each in gain.by_load.items()]
    remarks = (say_age(gain.age), say_trend(gain.age, (first, second)), say_tail(gain, first, second))
    told += [capitalize(each) for each in remarks if each]
    told += [say_lacks(names[side], lacks) for side, lacks in comparison.lacks.items()]
    return join_markdown(
        f"**{escape_markdown(say_comparison(gain, first, second))}**",
        escape_markdown(comparison.reason),
        markdown_table(head, rows, numbers=True),
        markdown_list(told),
    )


def comparison_csv(comparison: Comparison, first: str, second: str) -> str:
    """Return a line for each of both; the ratio is that to the first, whose own is 1."""
    gain = comparison.gain
    same = Estimate(ratio=1.0, low=1.0, high=1.0)
    ratio = Estimate(ratio=gain.ratio, low=gain.low, high=gain.high)
    arms = [(first, same, comparison.first), (second, ratio, comparison.second)]
    return write_arms_csv("configuration", arms, {"verdict": [None, gain.verdict]})
