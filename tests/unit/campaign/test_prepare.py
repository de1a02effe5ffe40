from dataclasses import replace

import pytest

from tests.unit.bench import ScriptedGenerator
from tests.unit.simulation import make_setup, space_of, write_study
from tuner.campaign.prepare import _refuse_strangers, prepare
from tuner.campaign.prepare_load import make_generators, prepare_load
from tuner.errors import TargetError, UsageError
from tuner.hosts.load_places import LOCAL, find_generators
from tuner.ports import RequestKind
from tuner.study import LoadSettings, load_study
from tuner.study.settings import NamedLoad
from tuner.testing.fakes import MemoryHost, completed


class NamedGenerator(ScriptedGenerator):
    """A load generator that says its version."""

    name = "named"
    package = "named-tools"

    def version_command(self):
        return ("named", "-V")

    def read_version(self, printed):
        return printed.stdout.decode().removeprefix("named ")


def test_the_version_of_a_load_generator_is_what_it_prints():
    host = MemoryHost(commands={"named": lambda _host, argv, _stdin: completed(argv, stdout=b"named 4.2")})

    assert find_generators(NamedGenerator(), {LOCAL: host}) == "4.2"


def test_a_load_generator_without_a_version_has_none():
    assert find_generators(ScriptedGenerator(), {LOCAL: MemoryHost()}) == ""


def test_a_missing_load_generator_is_named_with_its_package():
    with pytest.raises(TargetError, match=r"named is not installed .* apt-get install named-tools"):
        find_generators(NamedGenerator(), {LOCAL: MemoryHost()})


def test_a_parameter_whose_server_is_not_in_the_study_is_refused(tmp_path):
    settings = replace(write_study(tmp_path), servers=("apache",))

    with pytest.raises(UsageError, match=r"belongs to the server 'nginx', which is not among `servers:`"):
        _refuse_strangers(settings, space_of("sendfile"))


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"generator": "ab", "requests": (RequestKind(path="/a"),)}, r"yaml: load: load gen.* ab: .* mix"),
        ({"generator": "wrk", "requests_total": 10_000}, "wrk: it sends for a fixed time.* Use ab or h2load"),
        ({"generator": "h2load", "keepalive": False}, "h2load: h2load never ends"),
        ({"generator": "ab", "protocol": "h2c"}, "ab: it speaks"),
        ({"generator": "wrk", "rate_rps": 100}, "wrk: it sends as fast .* cannot keep a rate of 100"),
        ({"generator": "k6", "rate_rps": 100}, "k6: it cannot measure .* Use h2load or oha or vegeta"),
        ({"generator": "h2load", "rate_rps": 12_500}, "at most 100 requests/s.*`connections: 125` or more"),
    ],
)  # fmt: skip
def test_a_load_that_its_generator_cannot_send_is_refused_before_anything_runs(tmp_path, load, message):
    settings = write_study(tmp_path)
    settings = replace(settings, load=replace(settings.load, **load))

    with pytest.raises(UsageError, match=message):
        prepare(settings)


def test_several_loads_have_their_own_generators_and_are_told_apart_by_name(tmp_path):
    settings = write_study(tmp_path)
    loads = tuple(
        NamedLoad(name=name, weight=1, load=LoadSettings(generator=generator, connections=count))
        for name, generator, count in (("a", "wrk", 10), ("b", "ab", 20), ("c", "wrk", 30))
    )
    settings = replace(settings, load=loads[0].load, loads=loads)

    host = MemoryHost(commands={"sh": lambda _host, argv, _stdin: completed(argv, stdout=b"1")})
    load = prepare_load(settings, make_generators(settings), host)

    found = (load, *load.beside)
    assert [(each.name, each.generator.name, each.shape.connections) for each in found] == [
        ("a", "wrk", 10), ("b", "ab", 20), ("c", "wrk", 30),
    ]  # fmt: skip


def test_a_rig_knows_its_study_and_its_load(tmp_path):
    settings = write_study(tmp_path)

    setup = make_setup(settings, space_of("sendfile"))

    assert setup.settings.load == LoadSettings()
    assert {parameter.name for parameter in setup.space.parameters} >= {"sendfile"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "seed: 1",
            "target: {host: web1}",
            r"host: 'web1' is no host\. Write local, or ssh://user@host:port",
        ),
        ("generator: wrk", "generator: wkr", r"load generator: there is no 'wkr'\. Did you mean wrk\?"),
        ("servers: [nginx]", "servers: [ngnix]", r"server: there is no 'ngnix'\. Did you mean nginx\?"),
        ("seed: 1", "content: ./nowhere", r"content: \./nowhere: the directory does not exist"),
    ],
)
def test_what_is_refused_before_anything_runs_names_the_study_file(tmp_path, old, new, said):
    path = write_study(tmp_path).path
    path.write_text(path.read_text().replace(old, new))

    with pytest.raises(UsageError, match=rf"simulated\.yaml: {said}"):
        prepare(load_study(path))
