import io
from dataclasses import replace

from rich.console import Console

from tests.unit.trials import DEFAULT, SPACE, config_of, trial, window
from tuner.report.summary import Comparison, gather_arm
from tuner.report.terminal import comparison_table, fitting_table, parameter_list, searched_list
from tuner.space import describe_dead, describe_presets, describe_space
from tuner.statistics.confirmation.paired_gain import judge_pairs

WINNER = config_of(open_file_cache=1000)


def text_of(renderable, width=100):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    return console.file.getvalue()


def comparison(*, failed=0):
    first = gather_arm(DEFAULT, [trial(0, windows=(window(1000, p99_ms=8.0),))])
    second = gather_arm(WINNER, [trial(1, windows=(window(1300, failed=failed, p99_ms=6.0),))])
    return Comparison(first=first, second=second, gain=judge_pairs([(6.9, 7.16), (6.91, 7.18), (6.9, 7.17)]))


def test_a_comparison_says_first_what_it_found():
    lines = text_of(comparison_table(comparison(), "default", "hand-tuned.yaml")).splitlines()

    assert lines[0].startswith("hand-tuned.yaml is 1.3")
    assert "of default: improved" in lines[0]
    assert "3 pairs" in lines[0]
    assert "requests/s" in lines[2]


def test_a_side_that_holds_less_than_the_default_has_its_warning():
    less = replace(
        comparison(), lacks={"second": ("apache has capacity for 2 requests at once, the default for 150",)}
    )

    shown = text_of(comparison_table(less, "default", "hand-tuned-2012"), width=200).splitlines()

    assert shown[1] == (
        "hand-tuned-2012 has less capacity than the default: apache has capacity for 2 requests at once, "
        "the default for 150. Its figures do not show how it serves slow clients."
    )


def test_a_loss_is_one_and_has_its_reason_on_the_second_line():
    gain = judge_pairs([(7.16, 6.9), (7.18, 6.91), (7.17, 6.9)])
    lost = replace(comparison(), gain=gain, reason="The whole interval lies below 1.")

    headline, reason, *_ = text_of(comparison_table(lost, "default", "recipe")).splitlines()

    assert headline.endswith("of default: worse")
    assert reason == "The whole interval lies below 1."


def test_both_sides_stand_with_their_numbers():
    shown = text_of(comparison_table(comparison(failed=1300), "default", "winner")).splitlines()

    assert "1,000" in shown[3]
    assert "8.00 ms" in shown[3]
    assert "1,300 (50 %)" in shown[4]


def test_a_name_with_control_characters_is_made_harmless():
    shown = text_of(comparison_table(comparison(), "default", "\x1b[31mred\n.yaml"))

    assert "\x1b" not in shown
    assert shown.splitlines()[0].count("red") == 1


def test_every_parameter_of_a_space_is_shown_with_range_default_reason_and_source():
    rows = describe_space("nginx")

    shown = text_of(parameter_list(rows, describe_dead("nginx"), describe_presets("nginx")), width=4000)

    for row in rows:
        assert row["name"] in shown
        assert row["why"] in shown
        assert row["source"] in shown
    assert "presets, tried first" in shown
    assert all(preset.name in shown for preset in SPACE.presets)


def test_settings_that_are_dead_are_named_with_what_became_of_them():
    shown = text_of(parameter_list([], {"net.ipv4.tcp_tw_recycle": "removed in Linux 4.12"}, []), width=200)

    assert "obsolete, though old guides still recommend them" in shown
    assert "net.ipv4.tcp_tw_recycle: removed in Linux 4.12" in shown


def test_a_study_shows_what_it_searches_and_why_it_leaves_out_the_rest():
    found = {
        "searched": ["sendfile", "aio"],
        "cannot_act": {
            "keepalive_requests": {"reason": "it acts only with keep-alive", "source": "the code"}
        },
        "searched_all_the_same": {},
        "held": {"etag": "semantic"},
        "left_out": {},
        "presets": {"as-written": {}, "old-guide": {"accept_mutex": "removed long ago"}},
    }

    shown = text_of(searched_list("wrk, 100 connections", found), width=80)

    assert "tuned under wrk, 100 connections" in shown
    assert "sendfile, aio" in shown
    assert "keepalive_requests: it acts only with keep-alive" in shown
    assert "Source: the code" in shown
    assert "etag: semantic" in shown
    assert "not there" not in shown
    assert "old-guide: differs from the preset" in shown
    assert "accept_mutex: removed long ago" in shown
    assert "as-written:" not in shown


def test_no_word_of_a_table_is_cut_off():
    table = fitting_table("pick", "goodput", "cpu_us_per_request", "trials", "settings that change")
    table.add_row(
        "2 (winner)", "1.23× [1.22, 1.25]", "1.22× [1.20, 1.23]", "6", "open_file_cache 1000, aio on"
    )

    for width in range(40, 130):
        shown = text_of(table, width)
        assert "…" not in shown, width
        assert {"cpu_us_per_request", "open_file_cache", "[1.20,"} <= {*shown.split()}, width
