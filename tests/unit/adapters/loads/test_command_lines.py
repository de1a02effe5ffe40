from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from tuner.adapters.loads.ab import Ab
from tuner.adapters.loads.command import Command
from tuner.adapters.loads.h2load import H2load
from tuner.adapters.loads.k6 import K6
from tuner.adapters.loads.oha import Oha
from tuner.adapters.loads.websocket import WebSocket
from tuner.adapters.loads.wrk import Wrk
from tuner.errors import UsageError
from tuner.ports import Body, BodyCheck, Completed, LoadGenerator, Workload

WORKLOAD = Workload(
    url="http://127.0.0.1:8080/index.html",
    connections=100,
    keepalive=True,
    duration_s=5,
    threads=3,
    directory=PurePosixPath("/run/load"),
)
OWN = Command(
    command=["my-load", "{url}", "-c{connections}", "{duration_s}"], result={"json": {"correct": "/ok"}}
)
ALL: tuple[LoadGenerator, ...] = (Ab(), OWN, H2load(), K6(), Oha(), Wrk())


def test_wrk_has_threads_that_divide_the_connections_and_waits_longer_than_the_window():
    assert Wrk().command(WORKLOAD) == (
        "wrk",
        "--connections=100",
        "--threads=2",
        "--duration=5s",
        "--timeout=7s",
        "--script=/run/load/wrk.lua",
        "--header=Connection: keep-alive",
        "http://127.0.0.1:8080/index.html",
    )


def test_wrk_closes_connections_by_a_header():
    assert "--header=Connection: close" in Wrk().command(replace(WORKLOAD, keepalive=False))


def test_wrk_is_interrupted_at_a_length_that_it_cannot_express():
    argv = Wrk().command(replace(WORKLOAD, duration_s=1.5))

    assert argv[: argv.index("wrk")] == (
        *("timeout", "--preserve-status", "--signal=INT", "--foreground", "--kill-after=5", "1.500"),
    )
    assert "--duration=2s" in argv


def test_the_script_of_wrk_looks_at_no_single_response():
    script = Wrk().files(WORKLOAD)[PurePosixPath("/run/load/wrk.lua")].decode()

    assert "function done(" in script
    assert "function response" not in script
    assert "function request" not in script


def test_ab_gets_its_number_of_requests_after_its_time_limit():
    argv = Ab().command(WORKLOAD)

    assert argv.index("-t") < argv.index("-n")
    assert {"-r", "-k", "-q"} <= set(argv)
    assert "-l" in argv
    assert "-l" not in Ab().command(replace(WORKLOAD, body_bytes=5))
    assert argv[argv.index("ab") - 1] == "6.000"


def test_ab_asks_for_at_least_as_many_requests_as_connections():
    argv = Ab().command(replace(WORKLOAD, connections=2_000_000, duration_s=1))

    assert argv[argv.index("-n") + 1] == "2000000"


@pytest.mark.parametrize("load", [Ab(), H2load()], ids=lambda load: load.name)
def test_a_url_without_path_gets_one(load: LoadGenerator):
    assert load.command(replace(WORKLOAD, url="http://127.0.0.1:8080"))[-1] == "http://127.0.0.1:8080/"


def test_ab_and_h2load_end_after_so_many_requests_or_at_the_time_limit():
    counted = replace(WORKLOAD, requests_total=10_000, duration_s=60)

    of_ab, of_h2load = Ab().command(counted), H2load().command(counted)

    assert "-t" not in of_ab
    assert of_ab[of_ab.index("-n") + 1] == "10000"
    assert of_ab[of_ab.index("ab") - 1] == of_h2load[of_h2load.index("h2load") - 1] == "60.000"
    assert "--requests=10000" in of_h2load
    assert not any(option.startswith("--duration") for option in of_h2load)


@pytest.mark.parametrize("load", [OWN, K6(), Oha(), Wrk()], ids=lambda load: load.name)
def test_a_number_of_requests_is_refused_by_what_sends_for_a_time(load: LoadGenerator):
    with pytest.raises(
        UsageError, match=r"sends for a fixed time, not a fixed number of requests\. Use ab or h2load"
    ):
        load.command(replace(WORKLOAD, requests_total=10_000))


@pytest.mark.parametrize("load", [Ab(), H2load()], ids=lambda load: load.name)
def test_less_requests_than_connections_are_refused(load: LoadGenerator):
    with pytest.raises(UsageError, match="99 requests are less than one for each of 100 connections"):
        load.command(replace(WORKLOAD, requests_total=99))


def test_h2load_speaks_what_is_asked():
    assert "--h1" in H2load().command(WORKLOAD)
    assert "--no-tls-proto=h2c" in H2load().command(replace(WORKLOAD, protocol="h2c"))
    assert "--npn-list=h2" in H2load().command(replace(WORKLOAD, protocol="h2", url="https://localhost/"))


@pytest.mark.parametrize(
    ("load", "word"),
    [
        (Wrk(), "--header=Accept-Encoding: gzip"),
        (H2load(), "--header=accept-encoding: gzip"),
    ],
)
def test_what_is_accepted_is_said_in_each_request(load: LoadGenerator, word: str):
    assert word in load.command(replace(WORKLOAD, accept_encoding="gzip"))
    assert word not in load.command(WORKLOAD)


@pytest.mark.parametrize("load", [Ab(), K6(), Oha(), OWN], ids=lambda load: load.name)
def test_who_does_not_ask_for_compressed_answers_says_so(load: LoadGenerator):
    with pytest.raises(UsageError, match=r"cannot request gzip\. Use wrk or h2load"):
        load.command(replace(WORKLOAD, accept_encoding="gzip"))


def test_h2load_has_several_requests_under_way_on_a_connection():
    argv = H2load().command(replace(WORKLOAD, protocol="h2c", streams=10))

    assert "--max-concurrent-streams=10" in argv


@pytest.mark.parametrize("load", [Ab(), K6(), Oha(), OWN, Wrk()], ids=lambda load: load.name)
def test_several_requests_at_once_are_refused_by_what_sends_one(load: LoadGenerator):
    with pytest.raises(
        UsageError, match=r"one request at a time on each connection, not 10 at once\. Use h2load"
    ):
        load.command(replace(WORKLOAD, streams=10))


def test_who_checks_certificates_is_told_by_what():
    certificate = PurePosixPath("/run/certificate.pem")
    secured = replace(WORKLOAD, url="https://127.0.0.1:8080/", certificate=certificate)
    own = Command(
        command=["my-load", "{url}", "{duration_s}", "--ca={certificate}"],
        result={"json": {"correct": "/ok"}},
    )

    assert "--cacert /run/certificate.pem" in " ".join(Oha().command(secured))
    assert K6().command(secured)[:3] == ("env", "SSL_CERT_FILE=/run/certificate.pem", "k6")
    assert own.command(secured)[-1] == "--ca=/run/certificate.pem"
    assert own.command(WORKLOAD)[-1] == "--ca="


@pytest.mark.parametrize("load", [Ab(), H2load(), Wrk()], ids=lambda load: load.name)
def test_who_looks_at_no_certificate_sends_to_https_all_the_same(load: LoadGenerator):
    secured = replace(WORKLOAD, url="https://127.0.0.1:8080/index.html")

    assert load.command(secured)[-1] == "https://127.0.0.1:8080/index.html"


def test_h2load_divides_a_rate_among_its_clients():
    assert "--rps=2.5" in H2load().command(replace(WORKLOAD, rate_rps=250))


def test_h2load_begins_with_an_empty_log():
    assert H2load().files(WORKLOAD) == dict.fromkeys(H2load().outputs(WORKLOAD), b"")


def test_oha_corrects_latencies_at_a_fixed_rate():
    argv = Oha().command(replace(WORKLOAD, rate_rps=250))

    assert argv[argv.index("-q") + 1] == "250"
    assert "--latency-correction" in argv


def test_oha_follows_no_redirect():
    argv = Oha().command(WORKLOAD)

    assert argv[argv.index("--redirect") + 1] == "0"


def test_oha_always_has_a_timeout():
    assert "-t" in Oha().command(replace(WORKLOAD, protocol="h2c"))


def test_k6_reports_nothing_to_anybody():
    argv = K6().command(WORKLOAD)

    assert "--no-usage-report" in argv
    assert argv[argv.index("--address") + 1] == ""


def test_k6_carries_the_users_script_along(tmp_path: Path):
    script = tmp_path / "own.js"
    script.write_text("export default function () {}")

    files = K6(script=script).files(WORKLOAD)

    assert files[PurePosixPath("/run/load/script.js")] == script.read_bytes()


def test_a_url_cannot_leave_its_place_in_the_script():
    strange = 'http://127.0.0.1/"; throw 1; "\u2028'
    script = K6().files(replace(WORKLOAD, url=strange))[PurePosixPath("/run/load/k6.js")].decode()

    assert 'throw 1; "' not in script.replace('\\"', "'")
    assert "\u2028" not in script


def test_placeholders_are_filled_within_single_arguments():
    assert OWN.command(replace(WORKLOAD, url="http://x/a b", duration_s=2.5)) == (
        *("my-load", "http://x/a b", "-c100", "2.5"),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "ftp://x/"}, "neither http"),
        ({"url": "-v"}, "neither http"),
        ({"connections": 0}, "0 connections"),
        ({"duration_s": 0}, "measures nothing"),
        ({"duration_s": float("nan")}, "measures nothing"),
        ({"protocol": "spdy"}, "'spdy'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("load", ALL, ids=lambda load: load.name)
def test_what_cannot_be_sent_is_refused(load: LoadGenerator, change: dict[str, object], message: str):
    with pytest.raises(UsageError, match=message):
        load.command(replace(WORKLOAD, **change))


@pytest.mark.parametrize("load", [Ab(), Wrk(), OWN], ids=lambda load: load.name)
def test_a_rate_is_refused_by_what_sends_as_fast_as_it_can(load: LoadGenerator):
    with pytest.raises(UsageError, match="cannot keep a rate of 100 requests/s"):
        load.command(replace(WORKLOAD, rate_rps=100))


@pytest.mark.parametrize("load", [Ab(), Wrk(), K6()], ids=lambda load: load.name)
def test_http2_is_refused_by_what_does_not_speak_it(load: LoadGenerator):
    with pytest.raises(UsageError, match="h2load speaks HTTP/2"):
        load.command(replace(WORKLOAD, protocol="h2c"))


def test_h2load_refuses_a_connection_for_each_request_as_it_would_never_end():
    with pytest.raises(UsageError, match="never ends"):
        H2load().command(replace(WORKLOAD, keepalive=False))


@pytest.mark.parametrize("load", [H2load(), Oha(), OWN], ids=lambda load: load.name)
def test_a_connection_for_each_http2_request_is_refused(load: LoadGenerator):
    with pytest.raises(UsageError, match="h2c with `keepalive: false` cannot be sent"):
        load.command(replace(WORKLOAD, keepalive=False, protocol="h2c"))


def test_k6_refuses_windows_that_are_too_short_for_it():
    with pytest.raises(UsageError, match=r"0\.5 s is too short"):
        K6().command(replace(WORKLOAD, duration_s=0.5))


def test_k6_refuses_a_script_that_is_not_there(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        K6(script=tmp_path / "missing.js")


@pytest.mark.parametrize(
    ("load", "printed", "version"),
    [
        (Wrk(), b"wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\n", "4.1.0"),
        (Ab(), b"This is ApacheBench, Version 2.3 <$Revision$>\n", "2.3"),
        (H2load(), b"h2load nghttp2/1.52.0\n", "1.52.0"),
        (Oha(), b"oha 1.16.0\n", "1.16.0"),
        (K6(), b"k6 v1.8.1 (go1.26.8, linux/amd64)\n", "1.8.1"),
        (OWN, b"", ""),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_versions_are_found(load: LoadGenerator, printed: bytes, version: str):
    completed = Completed(argv=(), returncode=0, stdout=printed, stderr=b"", duration_s=0.1)

    assert load.read_version(completed) == version


HEADERS = {"Authorization": "Bearer a'b", "Accept-Language": "de"}


@pytest.mark.parametrize(
    ("load", "option"),
    [(Ab(), "-H"), (Oha(), "-H"), (H2load(), "--header"), (WebSocket(), "--header")],
    ids=lambda each: getattr(each, "name", ""),
)
def test_headers_are_single_arguments(load: LoadGenerator, option: str):
    argv = load.command(replace(WORKLOAD, headers=HEADERS))

    lines = [argv[index + 1] for index, word in enumerate(argv) if word == option]
    assert lines == ["Authorization: Bearer a'b", "Accept-Language: de"]


def test_wrk_and_k6_have_headers_in_their_scripts_as_texts_and_on_no_command_line():
    workload = replace(WORKLOAD, headers={"X": '"] = os.exit() --', "Y": "`${1}`"})

    (lua,), (javascript,) = Wrk().files(workload).values(), K6().files(workload).values()

    assert b'wrk.headers["X"] = "\\034] = os.exit() --"\n' in lua
    assert b'"Y": "`${1}`"' in javascript
    assert not any("os.exit" in word for word in Wrk().command(workload))


def test_a_command_of_the_users_own_is_told_that_it_has_its_own_headers():
    command = Command(["a", "{url}", "{duration_s}"], {"json": {"correct": "/ok"}})

    with pytest.raises(UsageError, match=r"it cannot send `load\.headers:`"):
        command.command(replace(WORKLOAD, headers=HEADERS))


@pytest.mark.parametrize("check", [BodyCheck.CONTAINS, BodyCheck.CHECKSUM])
@pytest.mark.parametrize("load", [Ab(), H2load(), Oha()], ids=lambda load: load.name)
def test_who_sees_no_body_says_who_does(load: LoadGenerator, check: BodyCheck):
    with pytest.raises(
        UsageError, match=f"{load.name}: it does not read response bodies.* Use wrk or k6, or"
    ):
        load.command(replace(WORKLOAD, body=Body(check=check)))


def test_certificates_are_not_checked_where_the_study_says_so():
    workload = replace(WORKLOAD, url="https://127.0.0.1/", verifies=False)

    assert "--insecure" in Oha().command(workload)
    assert b'"insecureSkipTLSVerify": true' in b"".join(K6().files(workload).values())
