"""Worth trying on a host: values that it lacks, by studies of alike hosts and by hints of the space."""

from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from tests.unit.corpus.samples import make_study, try_out
from tuner.advice.findings import Finding, Level
from tuner.advice.rules import read_file, rule_files
from tuner.commands.template import space_for
from tuner.commands.worth_trying import MOST_TRIED, Tunable, find_worth_trying
from tuner.hosts.machine import read_machine
from tuner.plugins import make_host, make_server
from tuner.ports import Facts, Installation, Scalar, Service

MACHINE = read_machine(make_host("local"))
SERVICE = Service(name="nginx", check=None, stop=(), start=(), reload=None)
CURRENT: Mapping[str, Scalar] = {
    "open_file_cache": 0, "access_log": "on", "access_log_buffer": 0, "sendfile": True, "gzip_static": False,
}  # fmt: skip
FILES = {PurePosixPath("/etc/nginx/nginx.conf"): b"http {\n  open_file_cache off;\n}\n"}


def find(current: Mapping[str, Scalar] = CURRENT, corpus=()) -> dict[str, Finding]:
    facts = Facts(version=(1, 22, 1), current=current)
    found = find_worth_trying(
        Tunable(
            title="nginx", adapter="nginx", space="nginx",
            installation=Installation(facts=facts, files=FILES, service=SERVICE),
        ),
        MACHINE, corpus,
    )  # fmt: skip
    assert {each.level for each in found} <= {Level.TRY}
    assert len(found) <= MOST_TRIED
    return {each.limit: each for each in found}


def test_a_hint_is_worth_trying_with_value_now_proposal_place_and_source():
    finding = find()["open_file_cache"]
    (proposal,) = finding.proposals

    assert (proposal.current, proposal.value, proposal.place) == ("off", 1000, "/etc/nginx/nginx.conf:2")
    assert finding.evidence[0].text == "The hint of its search space: 4 to 1 that it helps"
    assert "src/core/ngx_open_file_cache.c" in finding.source
    assert "old content of a replaced file" in finding.cost


def test_a_size_or_a_time_has_its_unit_and_a_number_of_things_has_none():
    found = find()
    units = {name: found[name].proposals[0].unit for name in ("open_file_cache", "access_log_buffer")}

    assert units == {"open_file_cache": "", "access_log_buffer": "KiB"}


@pytest.mark.parametrize(
    ("current", "missing"),
    [
        ({**CURRENT, "open_file_cache": 1000}, "open_file_cache"),
        ({"access_log": "on"}, "open_file_cache"),
        (CURRENT, "access_log"),
        (CURRENT, "sendfile"),
    ],
    ids=["it has the value", "its value is not known", "it changes behaviour", "it hangs on the load"],
)
def test_what_the_host_has_or_nobody_knows_is_not_worth_trying(current, missing):
    assert missing not in find(current)


def test_what_studies_of_alike_hosts_found_comes_first_with_its_gain():
    studies = [make_study(number=number) for number in range(1, 6)]

    first, *_ = find(corpus=studies).values()

    assert (first.rule, first.proposals[0].value) == ("corpus.open_file_cache", 1000)
    assert first.evidence[0].text.startswith("5 studies of similar hosts (likeness ")
    assert "× [" in first.evidence[0].text
    assert first.source.startswith("corpus: 000000000001, ")


def test_studies_in_which_it_harmed_leave_the_hint():
    harmful = [make_study(try_out({"open_file_cache": 1000}, -0.2), number=number) for number in range(1, 6)]

    assert find(corpus=harmful)["open_file_cache"].rule == "hint.open_file_cache"


def test_the_kernel_has_a_file_for_each_setting():
    installation = make_server("sysctl").find(make_host("local"))
    tunable = Tunable(title="kernel", adapter="sysctl", space="sysctl-net", installation=installation)

    found = find_worth_trying(tunable, MACHINE)

    assert all(each.proposals[0].place.startswith("/proc/sys/net/") for each in found)
    assert all(each.proposals[0].value != each.proposals[0].current for each in found)


def test_hints_come_from_the_space_that_a_new_study_searches():
    spaces = {name: space for path in rule_files() for name, space in read_file(path)[1].spaces.items()}

    assert "sysctl" in spaces
    assert spaces == {name: space_for(name) for name in spaces}
