import re
from pathlib import PurePosixPath

import pytest

from tests.unit.simulation import space_of
from tuner.errors import UsageError
from tuner.study import LoadSettings, TargetSettings, load_study, load_values
from tuner.study.objective import Constraint, Objective

LEAST = "study: test\nservers: [nginx]\nspace: [nginx]\n"


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="study.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_text


@pytest.fixture
def study(write):
    return lambda more="": load_study(write(LEAST + more))


def test_three_keys_are_enough_and_everything_else_has_its_default(study, tmp_path):
    found = study()

    assert (found.name, found.servers, found.space) == ("test", ("nginx",), ("nginx",))
    assert found.target == TargetSettings(host="local", mode="sandbox")
    assert found.load == LoadSettings(
        generator="wrk", hosts=("local",), path="/index.html", connections=100, keepalive=True, threads=1,
        protocol="http/1.1",
    )  # fmt: skip
    assert found.content == "builtin"
    assert found.objective == Objective()
    assert found.constraints == (Constraint(metric="failure_rate", limit=None),)
    assert (found.preset, found.minutes, found.trials, found.seed) == ("standard", None, None, 1)
    assert found.folder == tmp_path / "study.study"
    assert found.storage_url == f"sqlite:///{tmp_path / 'study.study' / 'study.db'}"


def test_a_window_may_end_after_so_many_requests(study):
    load = study("load: {generator: ab, requests_total: 10000, time_limit_s: 90}\n").load

    assert (load.requests_total, load.time_limit_s) == (10_000, 90.0)
    assert load.describe().endswith(", windows of 10,000 requests")
    assert "windows" not in study().load.describe()


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ("{requests_total: 99}", r"99 is out of range\. Give 100 to 10000000"),
        (
            "{connections: 500, requests_total: 499}",
            r"499 requests are too few for 500 connections\. Give 500 to",
        ),
        ("{requests_total: 1000, time_limit_s: 0.5}", r"load\.time_limit_s: 0\.5 is out of range"),
        (
            "{time_limit_s: 30}",
            r"load\.time_limit_s: `time_limit_s:` needs `requests_total:`, .* Write `requests_total:`",
        ),
    ],
)
def test_a_number_of_requests_out_of_bounds_is_refused(study, load, message):
    with pytest.raises(UsageError, match=message):
        study(f"load: {load}\n")


def test_a_server_may_say_to_whom_it_passes_requests(write):
    found = load_study(
        write("study: a\nservers: [{name: nginx, backend: h2o}, apache, {name: h2o}]\nspace: [nginx]\n")
    )

    assert found.servers == ("nginx", "apache", "h2o")
    assert found.backends == {"nginx": "h2o"}
    assert found.definition(space_of("sendfile"))["backend of nginx"] == "h2o"


def test_every_key_is_read(study, tmp_path):
    found = study(
        "target: {host: local, mode: sandbox}\n"
        "load:\n"
        "  generator: ab\n  host: local\n  path: /a/b?c=d\n  connections: 20000\n  keepalive: off\n"
        "  threads: 4\n  protocol: h2c\n  script: load.js\n  command: [bench, '{url}']\n"
        "  result: {correct: /ok}\n"
        "content: pages\nobjective: maximize  goodput_rps\n"
        "constraints: [failure_rate <= 0.01, latency_p99_ms <= 20]\n"
        "budget: {preset: quick, minutes: 2.5, trials: 7}\nstorage: sqlite\nseed: 42\n"
    )

    load = found.load
    assert (load.generator, load.path, load.connections, load.keepalive) == ("ab", "/a/b?c=d", 20000, False)
    assert (load.threads, load.protocol, load.script) == (4, "h2c", tmp_path / "load.js")
    assert load.options() == {
        "command": ("bench", "{url}"), "result": {"correct": "/ok"}, "script": tmp_path / "load.js",
    }  # fmt: skip
    assert found.content == "pages"
    assert [str(each) for each in found.constraints] == ["failure_rate <= 0.01", "latency_p99_ms <= 20"]
    assert (found.preset, found.minutes, found.trials, found.seed) == ("quick", 2.5, 7, 42)


def test_windows_warm_up_and_timeout_that_a_study_sets_stay_under_any_load(study):
    found = study(
        "load: {connections: 5000, timeout_s: 4}\nbudget: {preset: quick, window_s: 2, warmup_s: 7}\n"
    )
    usual = study("load: {connections: 5000}\nbudget: {preset: quick}\n").plan("quick")

    plan = found.plan("quick").at_pace(20.0)

    assert found.load.timeout_s == 4
    assert (plan.window_s, plan.warmup_s, plan.warmup_max_s) == (2, 7, 7)
    assert (usual.window_s, usual.warmup_s) == (3, 3)
    alone = study("budget: {preset: quick, window_s: 2}\n").plan("quick").at_pace(20.0)
    assert (alone.window_s, alone.warmup_s) == (2, 20)


def test_no_constraints_at_all_is_a_choice(study):
    assert study("constraints: []\n").constraints == ()


@pytest.mark.parametrize("empty", ["", " ~", " null"])
def test_a_key_without_a_value_has_its_default(study, empty):
    assert study(f"seed:{empty}\nload:{empty}\n").seed == 1


@pytest.mark.parametrize(("word", "truth"), [("yes", True), ("On", True), ("FALSE", False), ("no", False)])
def test_truths_may_be_written_in_many_ways(study, word, truth):
    assert study(f"load: {{keepalive: {word}}}\n").load.keepalive is truth


@pytest.mark.parametrize(
    ("more", "line", "said"),
    [
        ("seeds: 1\n", 4, "seeds: this key is not known. Did you mean seed?"),
        ("seed: one\n", 4, "seed: 'one' is not a whole number"),
        ("seed: 1.5\n", 4, "'1.5' is not a whole number"),
        ("seed: -1\n", 4, "-1 is out of range. Give 0 to"),
        ("seed: [1]\n", 4, "is not a whole number"),
        ("target: {host: local, modes: sandbox}\n", 4, "target.modes: this key is not known"),
        ("target: local\n", 4, "target: 'local' is not a mapping"),
        ("target: {mode: manged}\n", 4, "'manged' is no known value. Did you mean managed?"),
        ("target: {mode: managed, watchdog_s: 1}\n", 4, "1 is out of range. Give 5 to 3600"),
        ("load:\n  connection: 5\n", 5, "load.connection: this key is not known. Did you mean connections?"),
        ("load:\n  connections: 20001\n", 5, "20001 is out of range. Give 1 to 20000"),
        ("load:\n  connections: 0\n", 5, "0 is out of range"),
        ("load:\n  connections: 4\n  threads: 5\n", 6, "5 threads for 4 connections. Use fewer threads"),
        ("load:\n  path: index.html\n", 5, "'index.html' is not written as a URL path. Begin with /"),
        ("load:\n  path: '/a b'\n", 5, "without spaces"),
        ('load:\n  path: "/a\\r\\nHost: b"\n', 5, "is not written as a URL path"),
        ("load:\n  keepalive: maybe\n", 5, "'maybe' is neither true nor false"),
        ("load:\n  protocol: http/3\n", 5, "'http/3' is no known value"),
        ("load:\n  tls: maybe\n", 5, "'maybe' is neither true nor false"),
        (
            "load:\n  tls: true\n  protocol: h2c\n",
            5,
            "`protocol: h2c` is HTTP/2 without TLS. Write `protocol: h2`",
        ),
        (
            "load:\n  tls: false\n  protocol: h2\n",
            5,
            "`protocol: h2` is HTTP/2 over TLS. Leave `tls: false` out, or write",
        ),
        ("load:\n  streams: 2\n", 5, "2 requests at once on one connection need HTTP/2"),
        ("load:\n  protocol: h2\n  streams: 101\n", 6, "101 is out of range. Give 1 to 100"),
        ("load:\n  accept_encoding: gz\n", 5, "'gz' is no known value. Did you mean gzip?"),
        (
            "load:\n  requests: [{path: /}]\n  accept_encoding: gzip\n",
            6,
            "Write `headers: {Accept-Encoding: gzip}` in each entry instead",
        ),
        (
            "load:\n  host: ssh://web1\n",
            5,
            "'ssh://web1' cannot reach a sandbox, which has a private network",
        ),
        ("load:\n  token_directory: /srv\n", 5, "'/srv' is no document root on the target of a managed"),
        (
            "load:\n  path: http://web1/\n",
            5,
            "'http://web1/' is a whole URL, and only managed studies request whole URLs",
        ),
        ("load:\n  command: wrk\n", 5, "'wrk' is not a list. Write [first, second]"),
        ("load:\n  result: /ok\n", 5, "'/ok' is not a mapping"),
        ("content: []\n", 4, "content: [] is not a text"),
        ("objective: maximize happiness\n", 4, "no objective has the name 'maximize happiness'"),
        ("constraints: failure_rate <= 1\n", 4, "is not a list"),
        ("constraints:\n  - failure_rate <= 1\n  - latency <= 1\n", 6, "no metric has the name 'latency'"),
        ("constraints: [{failure_rate: 1}]\n", 4, "is not a list"),
        ("budget: {preset: quik}\n", 4, "'quik' is no known value. Did you mean quick?"),
        ("budget: {minutes: 0}\n", 4, "0 is out of range. Give 0.1 to 10080"),
        ("budget: {minutes: nan}\n", 4, "nan is out of range"),
        ("budget: {minutes: soon}\n", 4, "'soon' is not a number"),
        ("budget: {window_s: 0.5}\n", 4, "0.5 is out of range. Give 1 to 300"),
        ("budget: {warmup_s: long}\n", 4, "'long' is not a number"),
        (
            "budget: {window_s: 2}\nload: {generator: ab, requests_total: 1000}\n",
            4,
            "`window_s` and `requests_total` cannot be combined",
        ),
        ("load: {timeout_s: 0}\n", 4, "0 is out of range. Give 1 to"),
        ("budget: {trials: 0}\n", 4, "0 is out of range. Give 1 to"),
        ("budget: quick\n", 4, "budget: 'quick' is not a mapping"),
        ("storage: here\n", 4, "tuner stores a study only in a file in its folder"),
    ],
)
def test_what_is_wrong_is_refused_with_file_line_value_and_remedy(study, tmp_path, more, line, said):
    with pytest.raises(UsageError) as refused:
        study(more)

    assert str(refused.value).startswith(f"{tmp_path / 'study.yaml'}:{line}: ")
    assert said in str(refused.value)


MANAGED = "target: {host: 'ssh://web1', mode: managed}\n"


@pytest.mark.parametrize(
    ("host", "hosts"),
    [
        ("", ("local",)),
        ("  host: local\n", ("local",)),
        ("  host: ssh://gen1\n", ("ssh://gen1",)),
        ("  host: ['ssh://me@gen1:2222', 'ssh://[2001:db8::7]', local]\n",
         ("ssh://me@gen1:2222", "ssh://[2001:db8::7]", "local")),
    ],
)  # fmt: skip
def test_a_managed_study_may_send_load_from_several_hosts(study, host, hosts):
    found = study(f"{MANAGED}load:\n  path: http://web1:8080/a?b\n  token_directory: /var/www/html\n{host}")

    assert found.load.hosts == hosts
    assert found.load.path == "http://web1:8080/a?b"
    assert found.load.token_directory == PurePosixPath("/var/www/html")


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ("host: web1", "load.host: 'web1' is no host. Write local, or ssh://user@host:port"),
        ("host: ssh://", "is no host"),
        ("host: ssh://web1/etc", "is no host"),
        ("host: 'ssh://web1 -oProxyCommand=id'", "is no host"),
        ('host: "ssh://web1\\nx"', "is no host"),
        ('host: "ssh://web1\\x1b[2J"', "is no host"),
        ("host: [local, local]", "is not a list of different hosts. Name each host once"),
        ("host: []", "is not a list of different hosts"),
        ("host: {a: b}", "is not a text"),
        ("host: [local, ssh://b]\n  connections: 1", "2 hosts for 1 connections. Use fewer hosts"),
        ("path: http://root@web1/", "the URL contains a user name"),
        ("path: http://2130706433/", "is not a complete address"),
        ("path: ftp://web1/", "the text is no URL of a web server"),
        ("path: index.html", "is not written as a URL path"),
        ("token_directory: html", "is no document root on the target"),
        (
            "tls: true",
            "load.tls: `tls:` has no effect here, because an installed server decides about TLS itself.",
        ),
        (
            "protocol: h2",
            "load.protocol: h2 is HTTP/2 over TLS, and /index.html is not an https:// URL. Write a whole URL",
        ),
        ("token_directory: /var/www/../../etc", "is no document root on the target"),
    ],
)
def test_load_of_a_managed_study_that_may_go_astray_is_refused(study, load, said):
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        study(f"{MANAGED}load:\n  {load}\n")

    assert "study.yaml:" in str(refused.value)
    assert str(refused.value).isprintable()


def test_where_the_load_comes_from_belongs_to_what_is_measured(study):
    space = space_of()
    alone, apart = study(MANAGED), study(f"{MANAGED}load: {{host: 'ssh://gen1'}}\n")

    assert alone.definition(space)["load"] != apart.definition(space)["load"]
    assert "ssh://gen1" in apart.definition(space)["load"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("servers: [nginx]\nspace: [nginx]\n", "the key study is missing. Add `study: …`"),
        ("study: a\nspace: [nginx]\n", "the key servers is missing"),
        ("study: a\nservers: [nginx]\n", "the key space is missing"),
        ("study: a b\nservers: [nginx]\nspace: [nginx]\n", ":1: study: 'a b' cannot be a name"),
        ("study: ''\nservers: [nginx]\nspace: [nginx]\n", ":1: study: '' "),
        (f"study: {'a' * 65}\nservers: [nginx]\nspace: [nginx]\n", "cannot be a name"),
        ("study: ../a\nservers: [nginx]\nspace: [nginx]\n", "'../a' cannot be a name"),
        ("study: a\nservers: nginx\nspace: [nginx]\n", ":2: servers: 'nginx' is not a list"),
        (
            "study: a\nservers: []\nspace: [nginx]\n",
            "list of adapters. Write `servers: [NAME]`",
        ),
        ("study: a\nservers: [nginx, nginx]\nspace: [nginx]\n", "each once"),
        ("study: a\nservers: [nginx, {name: nginx}]\nspace: [nginx]\n", "each once"),
        ("study: a\nservers: [nginx, [b]]\nspace: [nginx]\n", "is no server. Write the name of its adapter"),
        ("study: a\nservers: [{name: b, backed: c}]\nspace: [nginx]\n", "Did you mean backend?"),
        ("study: a\nservers: [{backend: c}]\nspace: [nginx]\n", "servers.0: the key name is missing"),
        (
            "study: a\nservers: [{name: b, program: sbin/b}]\nspace: [nginx]\n",
            "'sbin/b' is no path of a program. Write the whole path",
        ),
        ("study: a\nservers: [{name: c, backend: c}]\nspace: [nginx]\n", "'c' is named as its own backend"),
        (
            "study: a\nservers: [{name: b, backend: c}, c]\nspace: [nginx]\ntarget: {mode: managed}\n",
            "`backend:` has no effect here, because installed servers pass requests on as their own",
        ),
        ("study: a\nservers: [nginx]\nspace: nginx\n", ":3: space: 'nginx' is not a list. Write `space:"),
        (
            "study: a\nservers: [nginx]\nspace: [nginx, ngnix]\n",
            ":3: space.1: there is no search space 'ngnix'. Did you mean nginx? For a file, write its path",
        ),
        ("study: a\nservers: [nginx]\nspace: []\n", "is not a list"),
        ("study: a\nservers: [nginx]\nspace: [[nginx]]\n", ":3: "),
        ("study: a\nservers: [nginx\n", ":"),
        ("- study\n", ""),
        (
            "studie: a\nservers: [nginx]\nspace: [nginx]\n",
            ":1: studie: this key is not known. Did you mean study?",
        ),
        ("", ""),
        ("study: [", ""),
        ("study: a\nstudy: b\nservers: [nginx]\nspace: [nginx]\n", ":2: "),
    ],
)
def test_a_study_without_what_it_needs_is_refused(write, tmp_path, text, said):
    path = write(text)

    with pytest.raises(UsageError) as refused:
        load_study(path)
    assert str(refused.value).startswith(str(tmp_path))
    assert said in str(refused.value)


def test_a_missing_study_is_refused_with_how_to_write_one(tmp_path):
    with pytest.raises(
        UsageError, match=r"the file does not exist. Write a study file with `tuner init SERVER -o"
    ):
        load_study(tmp_path / "nothing.yaml")


def test_a_folder_is_no_study(tmp_path):
    with pytest.raises(UsageError, match=r"cannot be read \(Is a directory\)"):
        load_study(tmp_path)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_bytes(b"study: \xff\xfe\n")

    with pytest.raises(UsageError, match="is not UTF-8"):
        load_study(path)


def test_a_study_belongs_to_its_definition_and_not_to_its_budget(study):
    space = space_of("sendfile")
    first = study("budget: {preset: quick, minutes: 3}\nseed: 1\n").definition(space)

    assert study("budget: {preset: thorough, trials: 9}\nseed: 2\n").definition(space) == first


@pytest.mark.parametrize(
    "more",
    [
        "load: {connections: 101}\n",
        "load: {keepalive: false}\n",
        "load: {path: /other.html}\n",
        "load: {generator: ab}\n",
        "load: {threads: 2}\n",
        "load: {protocol: h2c}\n",
        "load: {protocol: h2}\n",
        "load: {tls: true}\n",
        "load: {accept_encoding: gzip}\n",
        "load: {script: load.js}\n",
        "load: {command: [bench]}\n",
        "load: {result: {correct: /ok}}\n",
        "content: pages\n",
        "constraints: []\n",
        "load: {timeout_s: 3}\n",
        "budget: {window_s: 3}\n",
        "budget: {warmup_s: 3}\n",
    ],
)
def test_whatever_makes_two_trials_incomparable_is_another_definition(study, more):
    space = space_of("sendfile")

    assert study(more).definition(space) != study().definition(space)


def test_another_space_is_another_definition(study):
    assert study().definition(space_of("sendfile")) != study().definition(space_of("multi_accept"))


def test_a_definition_is_the_same_from_wherever_the_file_is_named(write, tmp_path, monkeypatch):
    path = write(LEAST + "load: {script: load.js}\n")
    monkeypatch.chdir(tmp_path)
    space = space_of("sendfile")

    here = load_study(path.relative_to(tmp_path))

    assert here.definition(space) == load_study(path).definition(space)
    assert here.storage_url == load_study(path).storage_url


def test_values_of_a_configuration_are_read_line_by_line(write):
    path = write("sendfile: off\nopen_file_cache: 1000\nnet.core.somaxconn: '4096'\n", "values.yaml")

    assert load_values(path) == {"sendfile": "off", "open_file_cache": "1000", "net.core.somaxconn": "4096"}


@pytest.mark.parametrize(
    ("text", "said"), [("sendfile: [off]\n", ":1: sendfile: "), ("a: 1\nb: {c: 1}\n", ":2: b: ")]
)
def test_a_value_that_is_none_is_refused_with_its_line(write, text, said):
    path = write(text, "values.yaml")

    with pytest.raises(UsageError, match=r"is not one value. Write `name: value`") as refused:
        load_values(path)
    assert said in str(refused.value)


def test_a_missing_file_of_values_is_refused_with_what_may_be_given(tmp_path):
    with pytest.raises(UsageError, match=r"Give default, winner, a preset.s name, or the path"):
        load_values(tmp_path / "values.yaml")


def test_a_workload_is_described_in_one_line():
    assert LoadSettings(keepalive=False).describe() == (
        "wrk, /index.html, 100 connections, Connection: close, http/1.1"
    )


@pytest.mark.parametrize(
    ("load", "tls", "offer"),
    [
        ("{}", False, "http/1.1"),
        ("{tls: true}", True, "tls"),
        ("{protocol: h2}", True, "h2"),
        ("{protocol: h2, tls: true}", True, "h2"),
        ("{protocol: h2c}", False, "h2c"),
        ("{protocol: h2c, tls: false}", False, "h2c"),
    ],
)
def test_what_a_private_server_has_to_offer_follows_from_protocol_and_tls(study, load, tls, offer):
    found = study(f"load: {load}\n").load

    assert (found.tls, found.offer) == (tls, offer)
    assert found.facts(page_bytes=1, is_loopback=True, is_installed=False)["tls"] is tls


def test_an_installed_server_speaks_tls_where_its_url_says_so(study):
    load = study(f"{MANAGED}load: {{protocol: h2, path: https://127.0.0.1/}}\n").load

    assert load.tls is False
    assert load.facts(page_bytes=1, is_loopback=True, is_installed=True)["tls"] is True


def test_what_is_said_of_tls_streams_and_compression_is_described(study):
    described = study("load: {generator: h2load, tls: true, accept_encoding: gzip}\n").load.describe()
    several = study("load: {generator: h2load, protocol: h2, streams: 10}\n").load.describe()

    assert described.endswith("keep-alive, http/1.1, over TLS, accepts gzip")
    assert several.endswith("keep-alive, h2, 10 requests at once on each")


def test_who_accepts_compressed_pages_knows_no_length_of_a_page(study):
    plain = study().load.facts(page_bytes=615, is_loopback=True, is_installed=False)
    packed = study("load: {accept_encoding: gzip}\n").load
    mixed = study("load: {requests: [{path: /, headers: {accept-encoding: 'br, gzip'}}]}\n").load

    assert (plain["accepts_gzip"], plain["page_bytes"], plain["streams"]) == (False, 615, 1)
    for load in (packed, mixed):
        facts = load.facts(page_bytes=615, is_loopback=True, is_installed=False)
        assert facts["accepts_gzip"] is True
        assert "page_bytes" not in facts


CHECK = """\
check_loads:
  - {name: yesterday.log, requests: [{path: /a, weight: 3}, {path: /b, status: 404}]}
"""


def test_a_check_load_is_sent_as_the_load_of_the_study_but_for_what_it_says(study):
    load = "load: {generator: h2load, protocol: h2, streams: 4, connections: 30, path: /x}\n"
    (found,) = study(load + CHECK).check_loads
    (other,) = study(f"{load}{CHECK.replace('log,', 'log, connections: 7, keepalive: off,')}").check_loads

    assert found.name == "requests of yesterday.log"
    assert [(each.path, each.weight, each.status) for each in found.load.requests] == [
        ("/a", 3, 200), ("/b", 1, 404),
    ]  # fmt: skip
    assert (found.load.path, found.load.generator, found.load.streams) == ("/a", "h2load", 4)
    assert (found.load.connections, found.load.keepalive) == (30, True)
    assert (other.load.connections, other.load.keepalive) == (7, False)


def test_a_check_load_is_part_of_what_makes_two_trials_comparable(study):
    space = space_of("sendfile")
    first = study(CHECK).definition(space)

    assert study().definition(space).keys() < first.keys()
    assert study(CHECK.replace("weight: 3", "weight: 4")).definition(space) != first


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (CHECK + CHECK.splitlines()[1] + "\n", "two check loads have the same name"),
        (CHECK.replace("weight: 3", "weight: 0.0001"), "the weight 0.0001 is less than 0.1% of the sum"),
        (CHECK.replace("path: /a", "url: 'http://a.test/'"), "`url:` needs a whole URL in `load.path:`"),
    ],
)
def test_a_check_load_that_cannot_be_sent_is_refused(study, more, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        study(more)
