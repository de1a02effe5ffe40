"""Load is aimed at the target and at nothing else, whatever a URL says."""

import ipaddress
import re
from pathlib import PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.deploy.load_target import check_load_target, read_network
from tuner.errors import TargetError, UsageError
from tuner.hosts.url import parse_url
from tuner.ports import Argv, Completed
from tuner.testing.fakes import MemoryHost, completed

HOSTILE = [
    # not a URL of a web server
    "", "/", "index.html", "//web1/", "web1", "web1:80/", "http:", "http:/", "http://", "http:///",
    "http:web1/", "ftp://web1/", "file:///etc/passwd", "gopher://web1/", "ws://web1/", "HTTP://web1/",
    "javascript:alert(1)", "data:text/html,x", "-http://web1/", "--output=/etc/passwd", "http+unix://socket/",
    "https//web1/",
    # users and passwords: who comes after the @ is whom it goes to
    "http://root@web1/", "http://web1:80@evil.example/", "http://web1@evil.example/", "http://@web1/",
    "http://web1%40evil.example/", "http://a:b@[::1]/", "http://web1?@evil.example/", "http://web1?a@b",
    # letters that end a request line, an argument, a log line or a name
    "http://web1/\n", "http://web1/\r\nHost: evil.example", "http://web1/a b", "http://web1/\t", "http://web1/\x00",
    "http://web1/\x1b[2J", "http://web1\n/", " http://web1/", "http://web1/ ", "http://web1\\@evil.example/",
    "http://web1/\\..\\", "http://web1/\x7f", "http://web1/%0d%0aSet-Cookie:x", "http://web1/%00", "http://web1/%1b[",
    "http://web1/%", "http://web1/%zz", 'http://web1/"', "http://web1/<script>", "http://web1/{a}", "http://web1/`id`",
    "http://web1/|sh", "http://web1/^", "http://web1/#fragment", "http://web1/[a-z]",
    # names beyond ASCII, and what looks like one
    "http://wéb1/", "http://web1\u3002example/", "http://web1\u200b/", "http://\uff57eb1/", "http://web1/\u00e9",
    "http://web1/\u202e",
    # names that are none
    "http://-web1/", "http://web1-/", "http://.web1/", "http://web..1/", "http://we*b1/", "http://web1,evil/",
    "http://$(id)/", "http://;id/", f"http://{'a' * 64}/", f"http://{'a.' * 130}b/", "http://web1..", "http://_/",
    # numbers that some programs take for addresses
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://127.1/", "http://0177.0.0.1/",
    "http://127.0.0.01/", "http://127.0.0.1.2/", "http://1.2.3/", "http://256.1.1.1/", "http://127.0.0.1./",
    "http://00000177.1/", "http://1.2.3.0x4/",
    # addresses of nobody in particular
    "http://0.0.0.0/", "http://[::]/", "http://224.0.0.1/", "http://[ff02::1]/", "http://169.254.169.254/",
    "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::ffff:127.0.0.1]/",
    "http://[::1/", "http://::1/", "http://[web1]/", "http://[]/", "http://[::1]evil.example/", "http://[1.2.3.4]/",
    # ports that are none
    "http://web1:/", "http://web1:0/", "http://web1:65536/", "http://web1:99999999/", "http://web1:-1/",
    "http://web1:80:90/", "http://web1:8a/", "http://web1:\u0661/", "http://web1:+80/", "http://web1:80.evil.example/",
    # too long
    "http://web1/" + "a" * 2000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_url_that_programs_may_read_differently_is_refused_with_what_to_write(text):
    with pytest.raises(UsageError, match="cannot be requested: ") as refused:
        parse_url(text)

    assert str(refused.value).isprintable()
    assert re.search(r"\. (Write|Give|Take|Leave|Use|Begin) ", str(refused.value)), str(refused.value)


@pytest.mark.parametrize(
    ("text", "host", "port", "rest"),
    [
        ("http://web1/index.html", "web1", 80, "/index.html"),
        ("https://web1.example.org:8443/a/b?c=d&e=%20f", "web1.example.org", 8443, "/a/b?c=d&e=%20f"),
        ("http://192.0.2.7:8080", "192.0.2.7", 8080, "/"),
        ("http://[2001:db8::7]:80/", "2001:db8::7", 80, "/"),
        ("http://xn--wb1-bma.example/", "xn--wb1-bma.example", 80, "/"),
        ("http://my_host/", "my_host", 80, "/"),
        ("http://web1./", "web1.", 80, "/"),
        ("http://web1/a@b?to=http://x@y/", "web1", 80, "/a@b?to=http://x@y/"),
        ("http://web1/..;/'()*!$", "web1", 80, "/..;/'()*!$"),
    ],
)
def test_a_plain_url_is_taken_apart(text, host, port, rest):
    url = parse_url(text)

    assert (url.host, url.port, url.rest) == (host, port, rest)
    assert url.origin + url.rest == url.text
    assert url.text in {text, f"{text}/"}


TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- {network}
        /24 link UNICAST
Local:
  +-- 0.0.0.0/0 2 0 2
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     |-- {address}
        /32 host LOCAL
"""
TARGET = "192.0.2.7"
SIX = "2001:db8::7"


def networked(
    name: str, *addresses: str, six: str = "", names: dict[str, list[str]] | None = None
) -> MemoryHost:
    """Make a host with addresses, in a network namespace of its own, that resolves names."""
    trie = "".join(TRIE.format(address=each, network="192.0.2.0") for each in addresses)
    inet6 = f"{ipaddress.IPv6Address(six).packed.hex()} 02 40 00 80 eth0\n" if six else ""
    files = {"fib_trie": trie, "if_inet6": inet6, "boot_id": "one\n"}

    def cat(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        return completed(argv, stdout=files[PurePosixPath(argv[-1]).name].encode())

    def readlink(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        return completed(argv, stdout=f"net:[{name}]\n".encode())

    def getent(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        found = (names or {}).get(argv[-1], [])
        lines = [f"{each:15} {kind}\n" for each in found for kind in ("STREAM name", "DGRAM", "RAW")]
        return completed(argv, returncode=0 if found else 2, stdout="".join(lines).encode())

    return MemoryHost(name=name, commands={"cat": cat, "readlink": readlink, "getent": getent})


def aim(text: str, names: dict[str, list[str]] | None = None, **given: object) -> str:
    target = networked("web1", TARGET, "172.17.0.1", six=SIX)
    source = networked("gen1", "192.0.2.9", "172.17.0.1", names=names)
    return check_load_target(parse_url(text), target, {"ssh://gen1": source}, **given)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"http://{TARGET}/", None),
        (f"http://[{SIX}]/", None),
        ("http://web1/", {"web1": [TARGET]}),
        ("http://web1/", {"web1": [SIX, TARGET]}),
        ("http://web1/", {"web1": [f"::ffff:{TARGET}"]}),
    ],
)
def test_load_is_sent_to_an_address_that_the_target_has(text, names):
    assert aim(text, names).endswith("is an address of web1")


@pytest.mark.parametrize(
    ("text", "names", "why"),
    [
        ("http://198.51.100.1/", None, "198.51.100.1, which is no address of the target"),
        ("http://192.0.2.255/", None, "which is no address of the target"),
        ("http://192.0.2.8/", None, "which is no address of the target"),
        ("http://[2001:db8::8]/", None, "which is no address of the target"),
        ("http://evil.example/", {"evil.example": ["198.51.100.1"]}, "198.51.100.1, which is no address"),
        ("http://web1/", {"web1": [TARGET, "198.51.100.1"]}, "198.51.100.1, which is no address"),
        ("http://nowhere/", {}, "the name nowhere cannot be resolved"),
        (
            "http://localhost/",
            {"localhost": ["127.0.0.1"]},
            "127.0.0.1, which is an address of the load host itself",
        ),
        ("http://localhost/", {"localhost": ["198.51.100.1"]}, "198.51.100.1, which is no address"),
        ("http://127.0.0.1/", None, "127.0.0.1, which is an address of the load host itself"),
        ("http://127.0.0.2/", None, "127.0.0.2, which is an address of the load host itself"),
        ("http://172.17.0.1/", None, "172.17.0.1, which is an address of the load host itself"),
        ("http://web1/", {"web1": ["fe80::1%eth0"]}, "fe80::1, which is no address"),
    ],
)
def test_load_that_would_arrive_elsewhere_is_refused_with_the_address(text, names, why):
    with pytest.raises(TargetError, match=re.escape(why)) as refused:
        aim(text, names)

    assert "ssh://gen1" in str(refused.value)
    assert "load.token_directory" in str(refused.value)


def test_a_target_that_sends_to_itself_may_use_its_loopback():
    target = networked("web1", TARGET)

    assert check_load_target(parse_url("http://127.0.0.1:8080/"), target, {"local": target})


def test_every_load_host_is_asked():
    target = networked("web1", TARGET)
    good = networked("gen1", "192.0.2.9", names={"web": [TARGET]})
    bad = networked("gen2", "192.0.2.10", names={"web": ["198.51.100.1"]})

    with pytest.raises(TargetError, match="seen from ssh://gen2"):
        check_load_target(parse_url("http://web/"), target, {"ssh://gen1": good, "ssh://gen2": bad})


DOCUMENT_ROOT = PurePosixPath("/var/www/html")


def behind_a_balancer(served_by: MemoryHost) -> tuple[MemoryHost, MemoryHost]:
    """Give a target and a load host whose curl gets what one host has in its document root."""
    source = networked("gen1", "192.0.2.9", names={"balancer": ["198.51.100.1"]})

    def curl(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        content = served_by.read(DOCUMENT_ROOT / argv[-1].rpartition("/")[2]).content
        return completed(argv, returncode=22 if content is None else 0, stdout=content or b"")

    source.commands["curl"] = curl
    return served_by, source


def test_behind_a_load_balancer_a_file_on_the_target_must_be_what_is_served():
    target, source = behind_a_balancer(networked("web1", TARGET))

    said = check_load_target(
        parse_url("http://balancer:8080/a/b"), target, {"ssh://gen1": source}, token_directory=DOCUMENT_ROOT
    )

    assert said == "http://balancer:8080 serves the test file that tuner put into /var/www/html on web1"
    (asked,) = [argv for argv in source.ran if argv[0] == "curl"]
    assert re.fullmatch(r"http://balancer:8080/tuner-[0-9a-f]{32}\.txt", asked[-1])
    assert not {"-L", "--location"} & set(asked)
    assert not [path for path in target.files if path.is_relative_to(DOCUMENT_ROOT)]


def test_a_balancer_that_asks_another_host_is_refused_and_the_file_is_gone():
    _, source = behind_a_balancer(networked("other", "192.0.2.50"))
    target = networked("web1", TARGET)

    with pytest.raises(TargetError, match="does not serve the test file"):
        check_load_target(
            parse_url("http://balancer/"), target, {"gen1": source}, token_directory=DOCUMENT_ROOT
        )

    assert len(target.written) == 2
    assert not [path for path in target.files if path.is_relative_to(DOCUMENT_ROOT)]


def test_a_server_that_answers_everything_does_not_pass_for_the_target():
    target, source = behind_a_balancer(networked("web1", TARGET))
    source.commands["curl"] = lambda _host, argv, _stdin: completed(argv, stdout=b"welcome")

    with pytest.raises(TargetError, match="does not serve the test file"):
        check_load_target(
            parse_url("http://balancer/"), target, {"gen1": source}, token_directory=DOCUMENT_ROOT
        )


def test_a_host_that_does_not_tell_its_addresses_is_not_believed():
    target = networked("web1", TARGET)
    silent = networked("gen1")

    with pytest.raises(TargetError, match="gen1: /proc/net/fib_trie does not list the addresses"):
        check_load_target(parse_url(f"http://{TARGET}/"), target, {"gen1": silent})


def test_a_route_to_a_whole_network_of_ones_own_counts():
    host = networked("web1", "198.51.100.0")
    text = TRIE.format(address="198.51.100.0", network="192.0.2.0").replace(
        "198.51.100.0\n        /32", "198.51.100.0\n        /24"
    )
    host.commands["cat"] = lambda _host, argv, _stdin: completed(
        argv, stdout=text.encode() * argv[-1].endswith("trie")
    )

    network = read_network(host)

    assert network.has(ipaddress.ip_address("198.51.100.77"))
    assert not network.has(ipaddress.ip_address("198.51.101.1"))


def test_this_machine_tells_its_addresses():
    network = read_network(LocalHost())

    assert network.has(ipaddress.ip_address("127.0.0.1"))
    assert network.has(ipaddress.ip_address("127.1.2.3"))
    assert not network.has(ipaddress.ip_address("192.0.2.1"))
    assert all(network.identity)


def test_a_sandbox_is_another_network_of_the_same_machine():
    with LocalHost().sandbox() as sandbox:
        inside = read_network(sandbox)
    outside = read_network(LocalHost())

    assert inside.identity[0] == outside.identity[0]
    assert inside.identity[1] != outside.identity[1]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/proc/net/fib_trie", b"|--\n /32 host LOCAL\n"),
        ("/proc/net/fib_trie", b"|-- 192.0.2.1\n x/99 host LOCAL\n"),
        ("/proc/net/if_inet6", b"zz 02 40\n"),
        ("/proc/net/if_inet6", b"00\n"),
    ],
)
def test_addresses_that_cannot_be_read_are_an_error_that_names_the_host(path: str, content: bytes):
    host = networked("web1", TARGET)
    told = {"/proc/net/fib_trie": b"LOCAL", path: content}
    host.commands["cat"] = lambda _host, argv, _stdin: completed(argv, stdout=told.get(argv[-1], b""))

    with pytest.raises(TargetError, match="web1: tuner cannot read the addresses in /proc/net"):
        read_network(host)


def test_a_resolver_that_talks_nonsense_is_an_error_that_names_the_host():
    source = networked("gen1", "192.0.2.9")
    source.commands["getent"] = lambda _host, argv, _stdin: completed(argv, stdout=b"no-address STREAM x\n")

    with pytest.raises(TargetError, match="gen1: tuner cannot read the output of `getent ahosts"):
        check_load_target(parse_url("http://balancer/"), networked("web1", TARGET), {"gen1": source})
