"""`targets:` of a study file: which hosts, and what counts of them together."""

import pytest

from tests.unit.simulation import space_of
from tuner.errors import UsageError
from tuner.records.blend import AcrossHosts, Hosts
from tuner.study import load_study
from tuner.study.file import choose_target, for_each_target

HEAD = "study: test\nservers: [nginx]\nspace: [nginx]\n"
TWO = "targets: [ssh://root@web1, ssh://root@web2]\n"
MANAGED = (
    "targets:\n  - {host: ssh://root@web1, mode: managed, watchdog_s: 30}\n"
    "  - {host: ssh://root@web2, mode: managed, watchdog_s: 30}\n"
)


@pytest.fixture
def study(tmp_path):
    def read(text: str):
        path = tmp_path / "study.yaml"
        path.write_text(HEAD + text)
        return load_study(path)

    return read


def test_each_host_is_read_as_one_alone_would_be(study):
    found = study(MANAGED)

    assert found.hosts == Hosts(names=("ssh://root@web1", "ssh://root@web2"), across=AcrossHosts.WORST)
    assert [each.watchdog_s for each in found.targets.entries] == [30, 30]
    assert found.target == found.targets.entries[0]
    assert study(f"{TWO}across: mean\n").hosts.across is AcrossHosts.MEAN
    assert study(f"{TWO}unlike_hosts: model\n").targets.models_unlike


def test_a_study_with_one_target_is_what_it_was(study):
    found = study("target: {host: ssh://root@web1}\n")

    assert (found.targets, found.hosts) == (None, None)
    assert "targets" not in found.definition(space_of("sendfile"))
    assert for_each_target(found) == (found,)


def test_other_hosts_or_another_aim_are_another_study(study):
    texts = (TWO, TWO.replace("web2", "web3"), f"{TWO}across: mean\n")

    assert len({study(text).definition(space_of("sendfile"))["targets"] for text in texts}) == 3


def test_a_worker_has_one_of_them_and_no_other(study):
    settings = study(MANAGED)
    workers = for_each_target(settings)

    assert [each.target.host for each in workers] == [*settings.targets.hosts]
    with pytest.raises(UsageError, match=r"none of the `targets:`.*web2"):
        choose_target(settings, "ssh://root@web22")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targets: [ssh://root@web1]\n", "not a list of 2 to 64 hosts"),
        ("targets: ssh://root@web1\n", "not a list of 2 to 64 hosts"),
        ("targets: [ssh://root@web1, {mode: managed}]\n", r"targets\.1: the key host is missing"),
        ("targets: [ssh://root@web1, {host: local, kind: x}]\n", "not known"),
        ("targets: [ssh://root@web1, ssh://deploy@WEB1:22]\n", "are one host. Name each host once"),
        ("targets: [local, local]\n", "are one host"),
        (
            "targets: [local, {host: ssh://root@web1, mode: managed}]\n",
            r"`mode` differs between the hosts \(sandbox and managed\)",
        ),
        (f"{TWO}target: {{host: local}}\n", "`target:` and `targets:` cannot be combined"),
        (f"{TWO}across: best\n", "'best' is no known value"),
        (f"{TWO}unlike_hosts: allow\n", "'allow' is no known value"),
        ("across: worst\n", "`across:` needs `targets:`"),
        ("unlike_hosts: model\n", "`unlike_hosts:` needs `targets:`"),
        (f'{MANAGED}load: {{path: "http://web1/a"}}\n', "the address of one host"),
        (f"{MANAGED}load: {{host: ssh://root@web2}}\n", "is one of the `targets:`"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(study, text, said):
    with pytest.raises(UsageError, match=said) as refused:
        study(text)
    assert "study.yaml:" in str(refused.value)
