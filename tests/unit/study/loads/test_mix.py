import pytest

from tests.unit.simulation import space_of
from tuner.errors import UsageError
from tuner.ports import RequestKind
from tuner.study import load_study
from tuner.study.trust import name_programs

HEAD = "study: test\nservers: [nginx]\nspace: [nginx]\nload:\n  requests:\n"
SUM = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"


@pytest.fixture
def study(tmp_path):
    def read(requests: str, more: str = ""):
        path = tmp_path / "study.yaml"
        path.write_text(HEAD + requests + more)
        return load_study(path)

    return read


def test_each_request_has_its_correct_response_and_its_share(study):
    load = study(
        "    - {path: /a?b=c, weight: 3}\n"
        "    - {path: /b, method: POST, headers: {X-Y: 1 2}, status: 405, bytes: 7, weight: 0.5}\n"
        f"    - {{path: /c, sha256: {SUM}}}\n"
        "    - {path: /never, weight: 0}\n"
    ).load

    assert load.requests == (
        RequestKind(path="/a?b=c", weight=3.0),
        RequestKind(
            path="/b", method="POST", headers={"X-Y": "1 2"}, status=405, body_bytes=7, weight=0.5
        ),
        RequestKind(path="/c", sha256=SUM),
    )  # fmt: skip
    assert load.path == "/a?b=c"
    assert "66.7% GET /a?b=c, 11.1% POST /b, 22.2% GET /c" in load.describe()
    assert load.facts(page_bytes=615, is_loopback=True, is_installed=False)["pages"] == 3
    assert "page_bytes" not in load.facts(page_bytes=615, is_loopback=True, is_installed=False)


def test_a_path_besides_is_what_is_waited_for(study):
    assert study("    - {path: /a}\n", "  path: /ready\n").load.path == "/ready"


def test_another_mix_is_another_study_and_none_is_what_it_was(study, tmp_path):
    space = space_of("sendfile")
    definitions = [study(f"    - {{path: /a, weight: {weight}}}\n    - {{path: /b}}\n").definition(space)
                   for weight in (1, 2)]  # fmt: skip
    (tmp_path / "plain.yaml").write_text("study: test\nservers: [nginx]\nspace: [nginx]\n")

    assert definitions[0] != definitions[1]
    assert "load.requests" not in load_study(tmp_path / "plain.yaml").definition(space)


def test_what_changes_something_on_an_installed_service_asks_for_trust(study):
    requests = "    - {path: /a}\n    - {path: /b, method: DELETE}\n"

    assert name_programs(study(requests)) == ()
    assert name_programs(study(requests, "target: {mode: managed}\n")) == (
        "load.requests sends DELETE /b to an installed service",
    )


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        (
            "    - {path: /a, weight: 0}\n    - {path: /b, weight: 0}\n",
            "all requests have weight 0, so tuner would send none",
        ),
        (
            "    - {path: /a, weight: 10000}\n    - {path: /b}\n",
            "the weight 1 is less than 0.1% of the sum of weights",
        ),
        ("    - {path: /a, weight: -1}\n", "-1 is out of range"),
        ("    - {path: /a, weight: nan}\n", "nan is out of range"),
        ("    []\n", "is not a list of requests"),
        ("    /a\n", "is not a list of requests. Write `- {path: /index.html, weight: 1}`"),
        ("    - /a\n", "requests.0: '/a' is not a mapping. Write `key: value` lines"),
        ("    - {weight: 1}\n", "this request has neither `path:` nor `url:`"),
        ("    - {path: a}\n", "'a' is not written as a URL path"),
        ("    - {path: /a b}\n", "is not written as a URL path"),
        ("    - {path: /a, verb: GET}\n", "verb: this key is not known"),
        ("    - {path: /a, method: HEAD}\n", "'HEAD' is no known value"),
        ("    - {path: /a, status: 99}\n", "99 is out of range"),
        ("    - {path: /a, bytes: many}\n", "is not a whole number"),
        ("    - {path: /a, sha256: abc}\n", "'abc' is no SHA-256. Write what sha256sum prints"),
        (
            "    - {path: /a, bytes: 3, body: any}\n",
            "`bytes:` and `body: any` cannot be combined. Leave one of the two out",
        ),
        (
            "    - {path: /a, body: checksum, headers: {Accept-Encoding: gzip}}\n",
            "`checksum` cannot be judged in a compressed body",
        ),
        ("    - {path: /a}\n  body: any\n", "each entry of `requests:` has a `body:` of its own"),
        (
            "    - {path: /a, headers: {Upgrade: b}}\n",
            "Upgrade is set by the load generator. Leave this header",
        ),
        ("    - {path: /a, headers: {x: b, X: c}}\n", "x, X: one header is given twice. Write each header"),
        ("    - {path: /a, headers: {'a b': c}}\n", "'a b' is no name of a header"),
        (
            '    - {path: /a, headers: {b: "c\\r\\nd"}}\n',
            "the value of this header is not one line of ASCII text",
        ),
    ],
)
def test_a_mix_that_cannot_be_sent_is_refused_at_its_line(study, requests, said):
    with pytest.raises(UsageError) as refused:
        study(requests)

    assert said in str(refused.value)
    assert "study.yaml:" in str(refused.value)


MANAGED = "target: {mode: managed}\n"


def test_a_whole_url_names_path_and_virtual_host_and_where_the_load_goes(study):
    load = study(
        "    - {url: 'https://shop.test/'}\n"
        "    - {url: 'https://img.test/a.jpg?x', headers: {Accept: image/webp}}\n"
        "    - {url: 'https://old.test/', headers: {host: new.test}}\n",
        MANAGED,
    ).load

    assert load.path == "https://shop.test/"
    assert "33.3% GET img.test/a.jpg?x" in load.describe()
    assert [(each.path, dict(each.headers)) for each in load.requests] == [
        ("/", {"Host": "shop.test"}),
        ("/a.jpg?x", {"Host": "img.test", "Accept": "image/webp"}),
        ("/", {"host": "new.test"}),
    ]


def test_the_address_of_the_load_may_be_another_than_its_virtual_hosts(study):
    load = study("    - {url: 'http://shop.test:8080/'}\n", f"  path: http://192.0.2.1:8080/\n{MANAGED}").load

    assert (load.path, load.requests[0].headers) == ("http://192.0.2.1:8080/", {"Host": "shop.test:8080"})


@pytest.mark.parametrize(
    ("requests", "more", "said"),
    [
        (
            "    - {url: 'http://a.test/'}\n",
            "",
            "is a whole URL, and only managed studies request whole URLs",
        ),
        ("    - {url: 'http://a.test/', path: /a}\n", MANAGED, "`url:` and `path:` cannot be combined"),
        ("    - {url: a.test}\n", MANAGED, "the text is no URL of a web server"),
        ("    - {url: 'http://a.test/'}\n    - {url: 'https://a.test/'}\n", MANAGED, ":7: .*`loads:`"),
        (
            "    - {url: 'http://a.test/'}\n",
            f"  path: /a\n{MANAGED}",
            "`url:` needs a whole URL in `load.path:` too, which is /a",
        ),
    ],
)
def test_a_url_that_the_load_cannot_reach_is_refused(study, requests, more, said):
    with pytest.raises(UsageError, match=said):
        study(requests, more)
