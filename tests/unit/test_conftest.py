from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"
MODULES = {
    "test_by_mark": "import pytest\n@pytest.mark.skip(reason='later')\ndef test_it(): pass\n",
    "test_while_running": "import pytest\ndef test_it(): pytest.skip('later')\n",
    "test_as_module": "import pytest\npytest.skip('later', allow_module_level=True)\n",
    "test_for_want_of_module": "import pytest\npytest.importorskip('no_such_module')\n",
    "test_expected": "import pytest\n@pytest.mark.xfail\ndef test_it(): raise ValueError\n",
}


@pytest.fixture
def ran(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    monkeypatch.setenv("CI", request.param)
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(**MODULES)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "--continue-on-collection-errors")


@pytest.mark.parametrize("ran", ["true"], indirect=True)
def test_whatever_is_skipped_is_a_failure_in_ci_but_an_expected_failure_is_none(ran: pytest.RunResult):
    ran.assert_outcomes(failed=1, errors=3, xfailed=1)
    ran.stdout.fnmatch_lines("*skipped in CI, where nothing may be skipped*later*")


@pytest.mark.parametrize("ran", ["false"], indirect=True)
def test_elsewhere_a_test_may_be_skipped(ran: pytest.RunResult):
    ran.assert_outcomes(skipped=4, xfailed=1)
