"""Rules for every test."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.testbed.bed import Testbed, open_testbed
from tests.testbed.host import TestHost

# How long an example takes depends on what else runs here. `make test-more` draws the usual number.
settings.register_profile("all-examples", settings(), deadline=None)
settings.register_profile("few-examples", settings(), deadline=None, max_examples=25)
settings.load_profile("few-examples")
# As the command has it: with more threads, those of the workers wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tuner remembers of hosts apart from what it remembers for the user of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNER_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    """A network of test hosts that the tests of a module share."""
    with open_testbed() as opened, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(opened.home))
        patch.delenv("SSH_AUTH_SOCK", raising=False)
        yield opened


@pytest.fixture(scope="module")
def web(bed: Testbed) -> TestHost:
    """A bare test host that the tests of a module share."""
    return bed.add_host("web")


@pytest.fixture
def own_bed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Testbed]:
    """A network of test hosts for one test, with a state directory of its own."""
    with open_testbed() as opened:
        monkeypatch.setenv("HOME", str(opened.home))
        monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
        yield opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failure in CI: what is not run there is not known to work."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _fail_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped module into a failure in CI."""
    report = yield
    if report.skipped:
        _fail_in_ci(report)
    return report


def _fail_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where nothing may be skipped: {reason}"
