import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.errors import UsageError
from tuner.plugins import (
    AdapterKind,
    adapter_names,
    list_adapters,
    make_host,
    make_load_generator,
    make_rate_generator,
    make_server,
)

ROOT = Path(__file__).parents[2]


def register(site: Path, distribution: str, group: str, points: dict[str, str], source: str = "") -> None:
    """Install a distribution as an installer leaves it: a module and its metadata."""
    metadata = site / f"{distribution}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    lines = [f"{name} = {target}" for name, target in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")
    (site / f"{distribution}.py").write_text(source)


def test_built_in_adapters_are_found_by_name():
    assert make_host("local").name == "local"
    assert make_server("nginx").name == "nginx"
    assert make_load_generator("wrk").name == "wrk"


def test_every_built_in_adapter_can_be_loaded_and_says_what_it_is():
    listed = [adapter for adapter in list_adapters() if adapter.distribution.startswith("servertuner ")]

    assert {adapter.kind for adapter in listed} == set(AdapterKind)
    for adapter in listed:
        assert "cannot be loaded" not in adapter.summary
        assert adapter.summary.endswith("."), f"{adapter.target}: {adapter.summary!r} is no sentence"


def test_an_adapter_bears_the_name_that_it_is_registered_under():
    assert {make_server(name).name for name in adapter_names(AdapterKind.SERVER)} == set(
        adapter_names(AdapterKind.SERVER)
    )


@pytest.mark.parametrize(
    ("name", "meant"), [("ngnix", " Did you mean nginx?"), ("h20", " Did you mean h2o?"), ("?", "")]
)
def test_an_unknown_name_is_refused_with_the_nearest_and_what_is_there_always_in_one_order(name, meant):
    with pytest.raises(UsageError) as refusal:
        make_server(name)

    names = ", ".join(adapter_names(AdapterKind.SERVER))
    own = "" if meant else " For a server without an adapter, begin with: tuner init command"
    assert str(refusal.value) == f"server: there is no {name!r}.{meant} Use one of: {names}.{own}"


def test_a_foreign_adapter_is_found_like_a_built_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = 'class Varnish:\n    """Varnish 2."""\n    name = "varnish"\n    package = "varnish"\n'
    register(tmp_path, "foreign_varnish", "tuner.servers", {"varnish": "foreign_varnish:Varnish"}, source)
    monkeypatch.syspath_prepend(tmp_path)

    listed = {adapter.name: adapter for adapter in list_adapters()}

    assert make_server("varnish").name == "varnish"
    assert listed["varnish"].summary == "Varnish 2."
    assert listed["varnish"].package == "varnish"
    assert listed["varnish"].distribution == "foreign_varnish 1.2"


def test_a_name_that_two_distributions_claim_is_refused_naming_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    register(tmp_path, "other_nginx", "tuner.servers", {"nginx": "other_nginx:Nginx"})
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(UsageError, match=r"registered twice, by .*other_nginx 1\.2") as refusal:
        make_server("nginx")

    assert "servertuner" in str(refusal.value)


@pytest.mark.parametrize(
    "target", ["no_such_module:Thing", "foreign_broken:Missing"], ids=["no module", "no class"]
)
def test_an_adapter_that_cannot_be_loaded_is_named_and_hides_no_other(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    register(tmp_path, "foreign_broken", "tuner.loads", {"broken": target})
    monkeypatch.syspath_prepend(tmp_path)

    listed = {adapter.name: adapter for adapter in list_adapters()}

    assert "cannot be loaded" in listed["broken"].summary
    assert listed["wrk"].summary
    with pytest.raises(UsageError, match=r"foreign_broken 1\.2\) cannot be loaded"):
        make_load_generator("broken")


def test_options_that_a_load_generator_does_not_take_are_refused():
    with pytest.raises(UsageError, match=r"wrk does not accept the options given \(colour\)"):
        make_load_generator("wrk", colour="green")


def test_a_checkout_that_is_not_installed_says_so(tmp_path: Path):
    shutil.copytree(ROOT / "tuner", tmp_path / "tuner", ignore=shutil.ignore_patterns("__pycache__"))
    script = "import sys; sys.path.insert(0, sys.argv[1]); import tuner.plugins as p; p.make_server('nginx')"
    # -I and -S: neither the environment nor site-packages; plugins needs the standard library alone.
    argv = [sys.executable, "-I", "-S", "-c", script, tmp_path]

    ran = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert "servertuner is not installed (its metadata is missing)" in ran.stderr
    assert "make setup" in ran.stderr


def test_response_times_at_a_rate_come_from_the_generator_that_says_it_logs_them():
    generator = make_rate_generator()

    assert generator is not None
    assert generator.name == "h2load"
