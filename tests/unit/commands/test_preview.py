"""What a run may change is listed; what no trial touches is listed only where everything is asked for."""

from tuner.commands.preview import Preview

PLAN = Preview(
    host="web1", ranges=(), diffs={}, services=(), trials=9, minutes=5, watchdog_s=120,
    refused={"aio": "not named by `only:`", "gzip": "the site has its own"},
)  # fmt: skip


def test_settings_that_no_trial_touches_are_counted_and_listed_where_all_is_asked_for() -> None:
    told, whole = PLAN.as_text().splitlines(), PLAN.as_text(is_verbose=True).splitlines()

    assert told[1] == "  2 other settings are not touched (listed by -v)"
    assert whole[1:3] == [
        "  aio: not touched: not named by `only:`", "  gzip: not touched: the site has its own",
    ]  # fmt: skip
    assert told[2:] == whole[3:]
