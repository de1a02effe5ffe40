import pytest

from tests.unit.simulation import space_of
from tuner.errors import UsageError
from tuner.records.blend import Across, Blend
from tuner.study import load_study
from tuner.study.trust import name_programs

HEAD = "study: test\nservers: [nginx]\nspace: [nginx]\n"
TWO = "loads:\n  - {content: tiny, weight: 3}\n  - {name: many, path: /index.html, connections: 1000}\n"


@pytest.fixture
def study(tmp_path):
    def read(text: str):
        path = tmp_path / "study.yaml"
        path.write_text(HEAD + text)
        return load_study(path)

    return read


def test_each_load_has_a_name_and_a_weight_and_is_read_as_one_alone_would_be(study):
    found = study(TWO)

    assert [(each.name, each.weight) for each in found.loads] == [("tiny", 3.0), ("many", 1.0)]
    assert found.load == found.loads[0].load
    assert (found.load.path, found.loads[1].load.connections) == ("/tiny.txt", 1000)
    assert found.blend == Blend(across=Across.WEIGHTED, weights={"tiny": 0.75, "many": 0.25})
    assert study(f"{TWO}across_loads: worst\n").blend.across is Across.WORST
    assert found.describe_load().startswith(
        "weighted of 2 loads: tiny (3): wrk, a text of 44 bytes, 100 conn"
    )


def test_a_study_of_one_load_is_what_it_was(study):
    found = study("load: {path: /a}\n")

    assert (found.loads, found.blend) == ((), None)
    assert found.describe_load() == found.load.describe()
    assert "loads" not in found.definition(space_of("sendfile"))


def test_other_weights_or_another_aim_are_another_study(study):
    space = space_of("sendfile")
    texts = (TWO, TWO.replace("weight: 3", "weight: 2"), f"{TWO}across_loads: worst\n")

    assert len({study(text).definition(space)["loads"] for text in texts}) == 3


def test_of_what_the_loads_do_not_agree_on_nothing_is_known(study):
    facts = study(
        "loads:\n  - {name: a, path: /a, keepalive: false}\n  - {name: b, path: /a}\n"
    ).load_facts(page_bytes=9, is_loopback=True, is_installed=False)  # fmt: skip

    assert facts["protocol"] == "http/1.1"
    assert facts["pages"] == 1
    assert facts.keys() & {"keepalive", "page_bytes"} == set()


def test_the_programs_of_every_load_are_named(study):
    text = (
        "loads:\n  - {name: a, path: /a}\n"
        "  - {name: b, generator: command, command: [own, '{url}'], result: {json: {correct: /a}}}\n"
    )

    assert name_programs(study(text)) == ("load.command runs `own '{url}'`",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TWO}load: {{path: /a}}\n", "yaml:7: load: `load:` and `loads:` cannot be combined"),
        ("loads: [{content: tiny}]\n", r"yaml:4: loads: .* is not a list of 2 to 12 loads"),
        ("loads: [{path: /a}, {content: tiny}]\n", r"this load has neither `name:` nor `content:`. Name"),
        ("loads: [{name: a b, path: /a}, {content: tiny}]\n", "'a b' is no name of a load"),
        ("loads: [{content: tiny}, {content: tiny}]\n", r"two loads have the same name \(tiny, tiny\)"),
        ("loads: [{content: tiny, weight: 0}, {content: html, weight: 0}]\n", "all loads have weight 0"),
        ("loads: [{content: tiny, weight: -1}, {content: html}]\n", r"weight: -1 is out of range"),
        ("across_loads: worst\n", "`across_loads:` needs `loads:`"),
        (f"{TWO}across_loads: best\n", "'best' is no known value"),
        (
            "loads: [{name: a, host: ssh://a}, {name: b, host: ssh://b}]\ntarget: {mode: managed}\n",
            "ssh://b differs from ssh://a, which sends the load a. Send all loads from the same hosts",
        ),
        (
            "loads: [{content: tiny}, {content: html, tls: true}]\n",
            "loads.1.tls: True differs from False of the load tiny; a server has one `tls` for all loads",
        ),
        (f"{TWO}content: /srv\n", "`content:` and `load.content: tiny` cannot be combined"),
    ],
)
def test_loads_that_cannot_be_are_refused_with_their_place(study, text, message):
    with pytest.raises(UsageError, match=message):
        study(text)


def test_a_wrong_value_within_a_load_is_told_with_its_line(study):
    with pytest.raises(UsageError, match=r"study\.yaml:6: loads\.1\.connections: 0 is out of range"):
        study("loads:\n  - {content: tiny}\n  - {content: html, connections: 0}\n")
