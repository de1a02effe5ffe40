"""Search spaces that other distributions register as entry points."""

from pathlib import Path

import pytest

from tests.unit.space.samples import facts
from tuner.commands.template import space_for
from tuner.errors import UsageError
from tuner.space import available_spaces, describe_space, describe_spaces, load_space

TEXT = """\
space: {name}
server: {name}
title: A server that tuner does not know
parameters:
  workers: {{kind: int, low: 1, high: 8, default: 2}}
"""


def install(site: Path, package: str, name: str, text: str | None) -> None:
    """Install a distribution as an installer leaves it: a package with the file of a space, and metadata."""
    metadata = site / f"{package}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(f"[tuner.spaces]\n{name} = {package}\n")
    (site / package).mkdir()
    (site / package / "__init__.py").write_text("")
    if text is not None:
        (site / package / f"{name}.yaml").write_text(text)


def test_a_foreign_space_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install(tmp_path, "tuner_zephyr", "zephyr", TEXT.format(name="zephyr"))
    monkeypatch.syspath_prepend(tmp_path)

    space = load_space(["zephyr"], facts=facts(), base=tmp_path)

    assert space.default() == {"workers": 2}
    assert "zephyr" in available_spaces()
    assert [row["name"] for row in describe_space("zephyr")] == ["workers"]
    assert {row["name"]: row["why"] for row in describe_spaces()}["zephyr"] == (
        "A server that tuner does not know"
    )
    assert space_for("zephyr") == "zephyr"


def test_a_fault_in_a_foreign_space_names_its_package_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(tmp_path, "tuner_faulty", "faulty", TEXT.format(name="faulty").replace("low: 1", "low: 9"))
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(UsageError, match=r"tuner_faulty/faulty\.yaml:5: .*low 9 is above high 8"):
        load_space(["faulty"], facts=facts(), base=tmp_path)


@pytest.mark.parametrize("name", ["nginx", "breeze"], ids=["a built-in one", "another foreign one"])
def test_a_name_that_two_packages_give_is_refused_naming_both(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for package in ("tuner_first", "tuner_second"):
        install(tmp_path, package, name, TEXT.format(name=name))
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(
        UsageError, match=rf"space '{name}': several packages define this name: .* and "
    ) as refusal:
        load_space([name], facts=facts(), base=tmp_path)

    assert "tuner_first 1.2" in str(refusal.value)
    assert "tuner_second 1.2" in str(refusal.value)
    assert ("tuner itself" in str(refusal.value)) is (name == "nginx")


@pytest.mark.parametrize(
    ("package", "text"),  # a package of its own each: where one was found is remembered
    [("tuner_gone", None), ("tuner_empty", "space: gone\nserver: gone\n")],
    ids=["no file", "no parameters"],
)
def test_a_space_that_cannot_be_read_is_listed_with_its_fault_and_hides_no_other(
    package: str, text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(tmp_path, package, "gone", text)
    monkeypatch.syspath_prepend(tmp_path)

    listed = {row["name"]: row for row in describe_spaces()}

    assert listed["gone"]["why"].endswith(("or remove it.", "that `tuner spaces` lists"))
    assert listed["gone"]["server"] == ""
    assert space_for("nginx") == "nginx"
    with pytest.raises(UsageError, match=r"gone"):
        describe_space("gone")


@pytest.mark.parametrize("target", ["no_such_package", "tuner_folderless.py:Thing"])
def test_a_registration_that_names_no_package_is_refused(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(tmp_path, "tuner_folderless", "adrift", None)
    (tmp_path / "tuner_folderless-1.2.dist-info" / "entry_points.txt").write_text(
        f"[tuner.spaces]\nadrift = {target}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(
        UsageError, match=r"space 'adrift': adrift\.yaml in .*tuner_folderless 1\.2\) cannot be read"
    ):
        load_space(["adrift"], facts=facts(), base=tmp_path)
