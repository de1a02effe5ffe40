import csv
import io
from dataclasses import replace

from tests.unit.trials import DEFAULT, config_of, trial, window
from tuner.report.forms import comparison_csv, comparison_markdown
from tuner.report.summary import Comparison, gather_arm
from tuner.statistics.confirmation.paired_gain import judge_pairs

FOUND = Comparison(
    first=gather_arm(DEFAULT, [trial(0, windows=(window(1000, p99_ms=8.0),))]),
    second=gather_arm(config_of(open_file_cache=1000), [trial(1, windows=(window(1300, p99_ms=6.0),))]),
    gain=judge_pairs([(6.9, 7.16), (6.91, 7.18), (6.9, 7.17)]),
)


def test_markdown_has_the_verdict_both_sides_and_what_one_of_them_lacks() -> None:
    less = replace(
        FOUND,
        lacks={"second": ("nginx has capacity for 2 requests at once, the default for 150",)},
        reason="It_",
    )

    text = comparison_markdown(less, "default", "my|recipe.yaml")

    assert text.startswith("**my\\|recipe.yaml is 1.3")
    assert "of default: improved**\n\nIt\\_\n\n" in text
    assert "|  | requests/s | p99 | failures | trials |\n| --- | ---: |" in text.replace(
        "p99, corrected", "p99"
    )
    assert "| default | 1,000 |" in text
    assert (
        "- my\\|recipe.yaml has less capacity than the default: nginx has capacity for 2 requests at once"
        in text
    )


def test_csv_has_a_line_for_each_with_its_ratio_and_settings() -> None:
    default, recipe = csv.DictReader(io.StringIO(comparison_csv(FOUND, "default", "recipe.yaml")))

    assert (default["configuration"], default["ratio"], default["verdict"]) == ("default", "1.0", "")
    assert (recipe["configuration"], recipe["verdict"]) == ("recipe.yaml", "improved")
    assert float(recipe["ratio"]) == FOUND.gain.ratio
    assert float(recipe["low"]) < float(recipe["ratio"]) < float(recipe["high"])
    assert float(recipe["goodput_rps"]) == FOUND.second.goodput_rps
    assert (default["open_file_cache"], recipe["open_file_cache"]) == ("0", "1000")
    assert recipe["sendfile"] == "on"
