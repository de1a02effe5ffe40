"""Which directives a server's files hold, and which of them a configuration may have added."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath

import yaml

from tests.unit.adapters.servers.apache.layouts import DEBIAN, find, with_mpm
from tests.unit.adapters.servers.nginx import layouts as nginx_layouts
from tests.unit.adapters.servers.php_fpm.layouts import BOOKWORM, find_pool
from tuner.adapters.servers.apache import Apache, ApacheMpm, ApachePrefork, ApacheWorker
from tuner.adapters.servers.apache.syntax import logical_lines
from tuner.adapters.servers.caddy import Caddy
from tuner.adapters.servers.caddy.config import OF_THE_PROXY, OF_THE_SERVER
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.h2o.installation import MAIN as H2O_MAIN
from tuner.adapters.servers.haproxy import Haproxy
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.nginx.settings import SETTINGS
from tuner.adapters.servers.nginx.syntax import ENCODING, read_directives
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.adapters.servers.php_fpm.installation import KEYS
from tuner.adapters.servers.php_fpm.pools import Layout
from tuner.adapters.servers.sysctl import Sysctl, path_of
from tuner.ports import Config, Facts, Files, Installation, Scalar, Site, Upstream
from tuner.space import SpaceFacts, available_spaces, describe_space, load_space

SITE = Site(directory=PurePosixPath("/site"), document_root=PurePosixPath("/site/www"))
NAMES = {"cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096}
MODULES = frozenset({"threads"})
KERNEL = Facts(
    current={
        "net.core.somaxconn": 4096,
        "net.ipv4.tcp_fin_timeout": 60,
        "net.ipv4.tcp_congestion_control": "cubic",
        **{f"net.ipv4.tcp_wmem[{index}]": 4096 << index for index in range(3)},
        **{f"net.ipv4.ip_local_port_range[{index}]": 32768 + index for index in range(2)},
    }
)
H2O_FILES: Files = {H2O_MAIN: b"user: nobody\nnum-threads: 2\naccess-log: /x\nlisten: 80\nhosts: {}\n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One way in which one server's files are written."""

    server: str
    write: Callable[[Config], Files]
    usual: Config
    """A configuration that is written, for the others to differ from."""
    before: Files
    """What is read beside the files that are written."""
    read: Callable[[Files], Counter[str]]
    """Counts directives, by name."""


def read_nginx(files: Files) -> Counter[str]:
    found: Counter[str] = Counter()
    for path, content in files.items():
        for top in read_directives(content.decode(ENCODING), path):
            found.update(each.name for each in (top, *top.walk()))
    return found


def read_apache(files: Files) -> Counter[str]:
    lines = (line for content in files.values() for _, line in logical_lines(content.decode(ENCODING)))
    return Counter(line.split()[0].lower() for line in lines if line and not line.startswith("#"))


def read_h2o(files: Files) -> Counter[str]:
    def keys(node: yaml.Node) -> Iterable[str]:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield str(key.value)
                yield from keys(value)
        elif isinstance(node, yaml.SequenceNode):
            yield "[]"

    roots = (yaml.compose(content.decode(), Loader=yaml.SafeLoader) for content in files.values())
    return Counter(key for root in roots for key in keys(root))


def read_haproxy(files: Files) -> Counter[str]:
    """Count lines by their first word; those of `bind` and `server` by the names of their options."""
    (content,) = files.values()
    found: Counter[str] = Counter()
    for line in content.decode().splitlines():
        words = line.removeprefix("    no ").split()
        if words and words[0] in {"bind", "server"}:
            fixed = {"bind": 2, "server": 3}[words[0]]
            found.update((words[0], *(f"{words[0]}.{word}" for word in words[fixed::2])))
        elif words:
            found[f"option.{words[1]}" if words[0] == "option" else words[0]] += 1
    return found


def read_caddy(files: Files) -> Counter[str]:
    configuration, environment = (content.decode() for content in files.values())

    def keys(block: object) -> Iterable[str]:
        if isinstance(block, dict):
            yield from block
        for each in block.values() if isinstance(block, dict) else block if isinstance(block, list) else ():
            yield from keys(each)

    exported = (line.removeprefix("export ").partition("=")[0] for line in environment.splitlines())
    return Counter(keys(json.loads(configuration))) + Counter(exported)


def read_php(files: Files) -> Counter[str]:
    names = {key: name for name, key in KEYS.items()}
    lines = [line for content in files.values() for line in content.decode(ENCODING).splitlines()]
    main = next(iter(files), PurePosixPath())
    entries = Layout(main=main, prefix=main.parent, pools={}).read_entries(files)
    found = Counter(names.get(each.key, each.key) for each in entries)
    # A line break of another sort than this parser's would be one for php-fpm.
    return found + Counter(line for line in lines if line.startswith("["))


def read_kernel(files: Files) -> Counter[str]:
    for content in files.values():
        assert content.count(b"\n") == 1
        assert content.endswith(b"\n")
        assert b"\0" not in content
    return Counter(map(str, files))


@cache
def usual(name: str, backend: str = "") -> tuple[Mapping[str, Scalar], str]:
    """Return the default configuration of a built-in space, with everything that is ever written."""
    backends = {name: backend} if backend else {}
    facts = SpaceFacts(names=NAMES, current=KERNEL.current, backends=backends)
    space = load_space([name], facts=facts, base=Path("/"))
    server = space.parameters[0].server
    return space.for_server(space.default(), server), server


@cache
def writers() -> Mapping[str, Writer]:
    """List the private and the installed way of every server that has it."""
    facts = Facts(version=(1, 22, 1), modules=MODULES, cores=2)
    found = nginx_layouts.find("debian-12")
    apache, pool = find(DEBIAN), find_pool(BOOKWORM)
    prefork = find(with_mpm("prefork"), ApachePrefork())
    h2o = Installation(facts=Facts(cores=2, current={**_h2o_current()}), files=H2O_FILES, service=None)
    kernel = Installation(facts=KERNEL, files={}, service=None)
    made: dict[str, Writer] = {}
    for name, server, read in (
        ("nginx", Nginx(), read_nginx),
        ("apache-event", Apache(), read_apache),
        ("apache-mpm", ApacheMpm(), read_apache),
        ("apache-prefork", ApachePrefork(), read_apache),
        ("apache-worker", ApacheWorker(), read_apache),
        ("h2o", H2o(), read_h2o),
    ):
        made[name] = Writer(
            server=server.name, usual=usual(name)[0], before={}, read=read,
            write=lambda config, server=server: server.render(config, SITE, facts),
        )  # fmt: skip
    behind = replace(SITE, backend=Upstream(port=8081))
    made["haproxy"] = Writer(
        server="haproxy", usual=usual("haproxy")[0], before={}, read=read_haproxy,
        write=lambda config: Haproxy().render(config, SITE, facts),
    )  # fmt: skip
    made["caddy"] = Writer(
        server="caddy", usual=usual("caddy", "http")[0], before={}, read=read_caddy,
        write=lambda config: Caddy().render(config, behind, facts),
    )  # fmt: skip
    made["sysctl-net"] = Writer(
        server="sysctl", usual=usual("sysctl-net")[0], before={}, read=read_kernel,
        write=lambda config: Sysctl().render(config, SITE, KERNEL),
    )  # fmt: skip
    for name, installed, installation, read in (
        ("nginx", Nginx(), found, read_nginx),
        ("apache-event", Apache(), apache, read_apache),
        ("apache-prefork", ApachePrefork(), prefork, read_apache),
        ("h2o", H2o(), h2o, read_h2o),
        ("php-fpm", PhpFpm(), pool, read_php),
        ("sysctl-net", Sysctl(), kernel, read_kernel),
    ):
        made[f"{name}-installed"] = Writer(
            server=installed.name, usual={}, before=installation.files, read=read,
            write=lambda config, server=installed, found=installation: server.rewrite(config, found),
        )  # fmt: skip
    return made


def _h2o_current() -> Mapping[str, Scalar]:
    return {name: value for name, value in usual("h2o")[0].items() if name != "access-log"}


@cache
def known(server: str) -> Mapping[str, frozenset[str]]:
    """Return name → texts of everything that tuner's spaces know of a server and write."""
    return {
        row["name"]: frozenset(map(str, (*row["choices"], *row["special"].values())))
        for name in available_spaces()
        for row in describe_space(name)
        if row["server"] == server and not row["internal"]
    }


def owned(server: str, config: Config) -> Counter[str]:
    """Return the directives that these settings may write, each once."""
    if server == "nginx":
        return Counter(
            {each.directive: 1 for each in SETTINGS if not config.keys().isdisjoint(each.parameters)}
        )
    if server == "sysctl":
        return Counter({str(path_of(name.partition("[")[0])): 1 for name in config})
    if server == "haproxy":
        return Counter(name.removeprefix("frontend.") for name in config)
    if server == "caddy":
        places = {name: path for name, (path, _) in {**OF_THE_SERVER, **OF_THE_PROXY}.items()}
        return Counter({part: 1 for name in config for part in places.get(name, (name,))})
    if server.startswith("apache"):
        return Counter({name.lower(): 1 for name in config})
    return Counter(dict.fromkeys(config, 1) | {"[www]": 1})


def beyond(writer: Writer, config: Config, written: Files) -> Counter[str]:
    """Count the directives that a configuration added without owning them."""
    usual = writer.write(writer.usual) if writer.usual else {}
    before = writer.read({**writer.before, **usual})
    return writer.read({**writer.before, **written}) - before - owned(writer.server, config)
