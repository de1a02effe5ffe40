"""The studies that come with tuner."""

import re

import pytest

from tuner.commands.template import MODELINE, copy_study
from tuner.errors import UsageError
from tuner.space.yaml_text import Document
from tuner.study import load_study
from tuner.study.named_studies import find_named, load_named, named_studies

STUDIES = load_named()
YEARS = {"2004", "2012", "2015"}


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_each_has_the_name_of_its_file_a_question_and_a_source(study):
    assert study.path.stem == study.name
    assert study.title
    assert "\n" not in study.title
    assert re.fullmatch(r".*, \d{4}", study.source)
    assert study.source[-4:] in YEARS
    assert study.preset == "quick"


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_each_says_how_it_is_run_and_what_is_scaled(study):
    text = study.path.read_text()
    commands = re.findall(r"^#   tuner (?:run|versus|explain) (.*)", text, re.MULTILINE)
    named = {name for command in commands for name in re.findall(r"(\S+)\.yaml", command)}
    assert named <= named_studies().keys()
    partner = re.search(r"; (\S+) says how to measure both", text)
    assert study.name in named or (partner and partner.group(1) in named_studies())
    assert "Here: " in text or partner or "Over loopback" in text or "Here 1,000" in text


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_what_was_tried_then_has_a_title_or_says_its_values_by_its_name(study):
    for entry in study.space:
        if isinstance(entry, Document):
            for name, preset in entry.data.get("presets", {}).items():
                assert preset.get("title") or re.fullmatch(r"\d+/\d+/\d+", name)


@pytest.mark.parametrize(
    "partners",
    [
        ("apache-2012", "nginx-2012"),
        ("nginx-2015", "h2o-2015", "kernel-2015"),
        ("prefork-packaged-2015", "event-packaged-2015", "nginx-packaged-2015"),
    ],
)
def test_partners_have_the_same_load_and_budget(partners):
    studies = [load_study(find_named(name)) for name in partners]

    assert len({each.load.describe() for each in studies}) == 1
    assert len({(each.preset, each.minutes, each.trials, each.constraints) for each in studies}) == 1


def test_a_study_is_written_as_it_is_below_its_schema_and_over_nothing(tmp_path):
    path = copy_study("nginx-2015", tmp_path / "mine.yaml")

    assert path.read_text() == MODELINE + find_named("nginx-2015").read_text()
    assert load_study(path).name == "nginx-2015"
    with pytest.raises(UsageError, match="this file already exists"):
        copy_study("nginx-2015", path)


def test_an_unknown_name_is_told_the_nearest(tmp_path):
    with pytest.raises(UsageError, match=r"there is no study 'nginx-2014'. Did you mean nginx-201\d"):
        copy_study("nginx-2014", tmp_path / "x.yaml")
    assert not (tmp_path / "x.yaml").exists()
