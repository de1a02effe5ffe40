from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.bench import CONFIG, Bench, Happening, scripted
from tests.unit.simulation import SMALL_PLAN, TUNED, make_setup, space_of, write_study
from tests.unit.space.samples import HOST
from tests.unit.trials import window
from tuner.adapters.loads.wrk import Wrk
from tuner.commands.check import (
    Findings,
    describe_windows,
    measure_at_pace,
    measure_default,
    refuse_failures,
)
from tuner.errors import TargetError
from tuner.measure import calibrate as calibrate_module
from tuner.measure import counters
from tuner.measure import trial as trial_module
from tuner.measure import window as load_module
from tuner.measure.rate import refuse_rate
from tuner.measure.validity.load import AGAIN
from tuner.ports import Failures
from tuner.records import Blame, Check, Metric, Verdict
from tuner.space import SpaceFacts, load_space
from tuner.study.objective import Objective, parse_constraint


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


def findings(settings, **given):
    setup = make_setup(settings, space_of(*TUNED))
    seen = given.pop("window", window(1234, failed=0))
    return Findings(setup=setup, window=seen, deploy_s=0.123, calibration=given.pop("calibration", None))


def test_a_check_says_what_will_run_where_and_how_the_default_did(settings):
    text = findings(settings).as_text(is_verbose=True)

    for said in (
        "study      simulated", "nginx 1.22.1, sysctl 6.18.44 on web1: 1,234 requests/s, 0 failures with wrk",
        "100 connections", "web1, Linux 6.18.44, 2 CPUs", "tuner tunes 5 parameters",
        "server on CPU 0, generator on CPU 1", "simulated.study/ only", "started in 0.12 s",
    ):  # fmt: skip
        assert said in text
    assert text.splitlines()[-1] == f"ready      tuner run {settings.path}"
    assert "noise" not in text


def test_a_check_ends_with_the_three_things_that_matter_and_ready(settings):
    found = replace(findings(settings), minutes=5.0)

    assert found.as_text().splitlines() == [
        "default    nginx 1.22.1, sysctl 6.18.44 on web1: 1,234 requests/s, 0 failures with wrk 4.1.0",
        f"writes     {settings.folder}/ only; tuner does not touch installed services",
        f"search     tuner tunes 5 parameters in about 5 min 00 s with preset {settings.preset}",
        f"ready      tuner run {settings.path}",
    ]
    assert found.as_text(is_verbose=True).splitlines()[-4:] == found.as_text().splitlines()


def test_a_check_tells_scripts_the_same(settings):
    shown = findings(settings).as_json()

    assert shown["servers"]["nginx"] == "1.22.1"
    assert shown["default"] == {"goodput_rps": 1234.0, "failures": 0, "deploy_s": 0.123}
    assert shown["parameters"] == sorted(TUNED)
    assert shown["noise"] is None
    assert shown["warnings"] == []


def test_warnings_of_the_gates_are_passed_on(settings):
    warned = findings(settings, window=window(1000, spoiled=True))

    assert "warning    steal: stolen." in warned.as_text()
    assert warned.as_json()["warnings"] == ["steal: stolen."]


def test_a_bound_that_the_default_itself_breaks_is_a_warning_with_the_remedy(tmp_path):
    settings = write_study(tmp_path, more="constraints: [failure_rate <= 0.001]\n")
    (warning,) = findings(settings, window=window(997, failed=3)).warnings

    assert warning.startswith(
        "constraint failure_rate <= 0.001: the default itself exceeds this limit on this host."
    )
    assert warning.endswith("For no worse than now, write failure_rate <= default")
    assert findings(settings, window=window(9999, failed=1)).warnings == ()


def test_a_bound_by_what_the_default_has_is_no_warning(tmp_path):
    settings = write_study(tmp_path, more="constraints: [failure_rate <= default]\n")

    assert findings(settings, window=window(997, failed=3)).warnings == ()


def test_a_check_says_when_servers_see_the_hosts_processes(settings):
    found = replace(findings(settings), sees_host=True)

    assert "warning    sandbox: servers in the sandbox see this machine's processes" in found.as_text()
    assert "see this machine's processes" in found.as_json()["warnings"][0]
    assert "see this machine's processes" not in findings(settings).as_text()


def test_the_calibration_is_part_of_the_findings(settings, monkeypatch):
    bench = Bench()
    for module in (calibrate_module, counters, load_module, trial_module):
        monkeypatch.setattr(module, "time", bench.clock)
    found = calibrate_module.calibrate(bench.site, CONFIG, bench.load, SMALL_PLAN, lambda *_: None)

    checked = findings(settings, calibration=found)

    assert "this host can prove gains of" in checked.as_text()
    assert checked.as_json()["noise"]["plateau"] == found.plateau


def test_a_default_that_fails_more_than_one_request_in_a_hundred_is_refused(settings):
    refuse_failures(settings, window(990, failed=10), expected="200")

    with pytest.raises(TargetError, match=r"20 of 1,000 requests of the default failed: 20 answered with"):
        refuse_failures(settings, window(980, failed=20), expected="200")


@pytest.mark.parametrize(
    ("failures", "said"),
    [
        (
            Failures(length=7, status=3),
            r"7 answered with another body, .* The correct response is 200 with 600 bytes; .* `body: any`",
        ),
        (
            Failures(status=3),
            r"3 answered with another status\. The correct response is 200 with 600 bytes\. Read the log",
        ),
        (
            Failures(timeout=3),
            r"3 not answered in time\. Lower `connections:`, or search for a configuration",
        ),
    ],
)  # fmt: skip
def test_failures_name_their_kind_what_was_expected_and_what_can_help(settings, failures, said):
    answered = 10 + failures.length + failures.status
    failing = replace(window(10, failed=0), failures=failures, bytes=200 * answered)

    with pytest.raises(TargetError, match=said) as refused:
        refuse_failures(settings, failing, expected="200 with 600 bytes")

    assert "Failures(" not in str(refused.value)
    assert ("connections" in str(refused.value)) is bool(failures.timeout)


@pytest.mark.parametrize(
    ("bad", "windows", "failure_rate"), [(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0), (3, 3, 0.5), (9, 3, 0.5)]
)
def test_a_burst_of_failures_is_no_verdict_on_the_default(monkeypatch, bad, windows, failure_rate):
    failing = Happening(rate=500, failures={"read": 500})
    bench = Bench(script=scripted(*[failing] * bad, then=Happening()))
    for module in (counters, load_module):
        monkeypatch.setattr(module, "time", bench.clock)

    with bench.deployed() as deployment:
        seen = measure_default(deployment, bench.load)

    assert len(bench.asked) == windows
    assert seen.failure_rate == failure_rate


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (1000, "of 1 s after 1 s of warm-up (preset quick); a client without a response for the whole"),
        (40, "of 4 s after 4 s of warm-up (a response of the default takes about 2.5 s)"),
        (4, "of 4 s after 4 s of warm-up (a response of the default takes about 25.0 s)"),
    ],
)
def test_the_windows_of_a_run_are_said_with_their_reason(monkeypatch, settings, rate, said):
    """The application answers so many requests a second; in its first second a slow one answers none."""
    silent = Happening(rate=0, failures={"timeout": 100})
    bench = Bench(script=scripted(*[silent] * (3 if rate < 100 else 0), then=Happening(rate=rate)))
    for module in (counters, load_module):
        monkeypatch.setattr(module, "time", bench.clock)
    load = replace(bench.load, shape=settings.load)

    with bench.deployed() as deployment:
        window, windows = measure_at_pace(
            deployment, load, settings, settings.plan("quick").fit(minutes=None, trials=None)
        )

    assert str(windows).startswith(said)
    assert window.failure_rate == 0
    shown = replace(findings(settings), windows=windows)
    assert f"windows    {said}" in shown.as_text(is_verbose=True)
    assert shown.as_json()["windows"]["window_s"] == windows.window_s


def test_windows_that_a_study_sets_are_said_to_be_set(tmp_path, monkeypatch):
    settings = replace(write_study(tmp_path), window_s=2.0, warmup_s=6.0)
    settings = replace(settings, load=replace(settings.load, timeout_s=1.5))
    bench = Bench()
    for module in (counters, load_module):
        monkeypatch.setattr(module, "time", bench.clock)
    load = replace(bench.load, shape=settings.load, generator=Wrk(), timeout_s=1.5)

    windows = describe_windows(load, settings, settings.plan("quick"), 0.0)

    assert str(windows) == (
        "of 2 s after 6 s of warm-up (as the study file sets them); "
        "a client without a response for 1.5 s counts as failed"
    )


def test_what_was_not_tried_is_said(settings):
    found = replace(findings(settings), unseen=("optimizer mine:Sampler: its code runs only with --trust",))

    assert "not tried  optimizer mine:Sampler: its code runs only with --trust" in found.as_text()
    assert found.as_json()["not_tried"] == list(found.unseen)
    path = found.setup.settings.path
    ready = f"ready      tuner run {path}; some parts are not tried yet: tuner check {path} --trust"
    assert found.as_text().splitlines()[-1] == ready
    assert findings(settings).as_text().splitlines()[-1] == f"ready      tuner run {path}"


def test_left_out_parameters_are_told_with_their_reason(settings):
    setup = make_setup(settings, space_of(*TUNED))
    left_out = replace(setup.space, left_out={"net.core.odd": "this kernel does not have it"})
    found = Findings(setup=replace(setup, space=left_out), window=window(), deploy_s=0.1, calibration=None)

    assert "left out   net.core.odd: this kernel does not have it" in found.as_text(is_verbose=True)


@pytest.fixture
def closed_space():
    """nginx's space where each connection is closed after its answer, with a setting that the study names."""
    facts = SpaceFacts(names=HOST, load={"keepalive": False, "installed": False, "pages": 1})
    named = {"parameters": {"open_file_cache_valid": {"high": 30}}}
    return load_space(["nginx", named], facts=facts, base=Path())


def test_what_cannot_act_under_the_load_is_told_with_its_reason(settings, closed_space):
    setup = replace(make_setup(settings, closed_space), space=closed_space)
    found = Findings(setup=setup, window=window(), deploy_s=0.1, calibration=None)

    told = "it acts only with keep-alive"
    inert = setup.space.inert
    assert f"{len(inert)} more have no effect under this load (to list them, add -v)" in found.as_text()
    assert told not in found.as_text()
    (line,) = [each for each in found.as_text(is_verbose=True).splitlines() if each.endswith(told)]
    names = line.removeprefix("cannot act ").removesuffix(f": {told}").split(", ")
    assert {*names} == {name for name, reason in inert.items() if reason == told}
    assert found.as_json()["cannot_act"]["keepalive_requests"] == told
    assert "keepalive_requests" not in found.as_json()["parameters"]


def test_what_cannot_act_and_is_named_by_the_study_is_a_warning(settings, closed_space):
    setup = replace(make_setup(settings, closed_space), space=closed_space)
    found = Findings(setup=setup, window=window(), deploy_s=0.1, calibration=None)

    (warning,) = found.warnings
    assert warning.startswith(
        "open_file_cache_valid has no effect under this load (it acts only on an installed"
    )
    assert "open_file_cache_valid" in found.as_json()["parameters"]


def test_what_the_generator_cannot_do_is_no_reason_for_less_load(settings):
    """It lost connections that it does not open again: fewer of them would be lost just the same."""
    said = f"the generator failed: 9 connections were closed. Raise how many requests it answers{AGAIN}."
    verdict = Verdict(check=Check.GENERATOR, blame=Blame.ENVIRONMENT, reason=said)
    failing = replace(window(10, failed=0), failures=Failures(other=9), verdicts=(verdict,))

    with pytest.raises(TargetError, match="Raise how many requests it answers") as refused:
        refuse_failures(settings, failing, expected="200")

    assert str(refused.value).endswith("how many requests it answers.")


def at_rate(settings, rate_rps):
    load = replace(settings.load, rate_rps=rate_rps)
    return replace(settings, load=load, preset="quick", objective=Objective(metric=Metric.LATENCY_P99))


def test_at_a_rate_a_check_says_what_was_due_and_how_slow_the_slowest_responses_were(settings):
    seen = window(3499, p99_ms=4.2)

    text = findings(at_rate(settings, 3500.0), window=seen).as_text()

    assert "3,499 requests/s of 3,500 that are due, p99 4.20 ms, 0 failures" in text
    default = findings(at_rate(settings, 3500.0), window=seen).as_json()["default"]
    assert (default["rate_rps"], default["latency_p99_ms"]) == (3500.0, 4.2)
    assert "latency_p99_ms" not in text


def test_windows_with_few_requests_for_a_p99_are_a_warning(settings):
    few = at_rate(settings, 45.0)
    windows = describe_windows(replace(Bench().load, rate_rps=45.0), few, few.plan("quick"), 0.0)

    assert "a p99 needs 1,000 requests in a window" in str(windows)
    (warning,) = replace(findings(few), windows=windows).warnings
    assert "a window has 180 requests, so its p99 depends on only the 2 slowest requests." in warning


def test_a_default_that_does_not_take_the_rate_is_refused_with_what_it_serves(monkeypatch, settings):
    bench = Bench(script=scripted(then=Happening(rate=2000)))
    for module in (counters, load_module):
        monkeypatch.setattr(module, "time", bench.clock)
    asked, load = at_rate(settings, 3500.0), replace(bench.load, rate_rps=3500.0)

    busy = Verdict(check=Check.SCHEDULE, blame=Blame.ENVIRONMENT, reason="the generator used 91 %.")
    with bench.deployed() as deployment, pytest.raises(TargetError) as refused:
        refuse_rate(asked, load, [replace(window(2900), verdicts=(busy,))], deployment)

    assert "load.rate: the study asks for 3,500 requests/s, and the default serves only about 2,000." in str(
        refused.value
    )
    assert "Write `rate: 1400` or less" in str(refused.value)
    assert "failure_rate <= 0.001 unlike default" in str(refused.value)
    assert [argv[3] for argv in bench.asked] == [""]  # without a rate


def test_a_rate_that_the_default_takes_or_that_is_sought_is_not_refused(settings):
    asked, load = at_rate(settings, 3500.0), replace(Bench().load, rate_rps=3500.0)
    sought = (parse_constraint("failure_rate <= 0.001 unlike default", "constraints"),)

    refuse_rate(asked, load, [window(2900), window(3400)])
    refuse_rate(asked, load, [])
    refuse_rate(asked, load, [window(2900, spoiled=True)])
    refuse_rate(asked, replace(load, rate_rps=None), [window(10)])
    refuse_rate(replace(asked, constraints=sought), load, [window(10)])
