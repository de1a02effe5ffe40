"""No value, and no name, of a setting adds a directive to a server's files: it is written or refused."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.hostile_values import scalars
from tests.unit.servers import nginx_layouts
from tests.unit.servers.apache_layouts import DEBIAN, find
from tests.unit.servers.php_layouts import BOOKWORM, find_pool
from tuner.adapters.servers import _nginx_settings as nginx_settings
from tuner.adapters.servers._apache_syntax import logical_lines
from tuner.adapters.servers._h2o_installed import MAIN as H2O_MAIN
from tuner.adapters.servers._nginx_syntax import ENCODING, read_directives
from tuner.adapters.servers._php_fpm_installation import KEYS
from tuner.adapters.servers._php_fpm_pools import read_entries
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.adapters.servers.sysctl import Sysctl, path_of
from tuner.errors import ConfigRejected, TargetError, TunerError, UsageError
from tuner.ports import Config, Facts, Files, Installation, Scalar, Site
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


def read_php(files: Files) -> Counter[str]:
    names = {key: name for name, key in KEYS.items()}
    lines = [line for content in files.values() for line in content.decode(ENCODING).splitlines()]
    entries = read_entries(files, next(iter(files))) if files else ()
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
def usual(name: str) -> tuple[Mapping[str, Scalar], str]:
    """Return the default configuration of a built-in space, with everything that is ever written."""
    facts = SpaceFacts(names=NAMES, current=KERNEL.current)
    space = load_space([name], facts=facts, base=Path("/"))
    server = space.parameters[0].server
    return space.for_server(space.default(), server), server


@cache
def writers() -> Mapping[str, Writer]:
    """List the private and the installed way of every server that has it."""
    facts = Facts(version=(1, 22, 1), modules=MODULES, cores=2)
    found = nginx_layouts.find("debian-12")
    apache, pool = find(DEBIAN), find_pool(BOOKWORM)
    h2o = Installation(facts=Facts(cores=2, current={**_h2o_current()}), files=H2O_FILES, service=None)
    kernel = Installation(facts=KERNEL, files={}, service=None)
    made: dict[str, Writer] = {}
    for name, server, read in (
        ("nginx", Nginx(), read_nginx),
        ("apache-event", Apache(), read_apache),
        ("h2o", H2o(), read_h2o),
    ):
        made[name] = Writer(
            server=server.name, usual=usual(name)[0], before={}, read=read,
            write=lambda config, server=server: server.render(config, SITE, facts),
        )  # fmt: skip
    made["sysctl-net"] = Writer(
        server="sysctl", usual=usual("sysctl-net")[0], before={}, read=read_kernel,
        write=lambda config: Sysctl().render(config, SITE, KERNEL),
    )  # fmt: skip
    for name, installed, installation, read in (
        ("nginx", Nginx(), found, read_nginx),
        ("apache-event", Apache(), apache, read_apache),
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
            {
                each.directive: 1
                for each in nginx_settings.SETTINGS
                if not config.keys().isdisjoint(each.parameters)
            }
        )
    if server == "sysctl":
        return Counter({str(path_of(name.partition("[")[0])): 1 for name in config})
    if server == "apache":
        return Counter({name.lower(): 1 for name in config})
    return Counter(dict.fromkeys(config, 1) | {"[www]": 1})


WRITERS = (
    "nginx", "apache-event", "h2o", "sysctl-net", "nginx-installed", "apache-event-installed",
    "h2o-installed", "php-fpm-installed", "sysctl-net-installed",
)  # fmt: skip
UNKNOWN = (
    "error_log", "load_module", "ErrorLog", "LoadModule", "Include", "user", "User", "kernel.modprobe",
    "Define", "pid", "fs.protected_links", "", "a b", "a;b", "x\ny", "env", "php_admin_value[x]",
    "listen.owner", "vm.swappiness", "net.ipv4.conf.all.rp_filter", "proxy.reverse.url",
    "mruby.handler", "ScriptSock", "access_log;",
)  # fmt: skip


def hostile(server: str) -> st.SearchStrategy[dict[str, Scalar]]:
    names = st.sampled_from(sorted(known(server))) | st.sampled_from(UNKNOWN) | st.text(max_size=8)
    return st.dictionaries(names, scalars, min_size=1, max_size=3)


@pytest.mark.parametrize("way", WRITERS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_value_is_written_as_one_value_or_refused(way: str, data: st.DataObject):
    writer = writers()[way]
    changes = data.draw(hostile(writer.server))

    expect_one_value_each(writer, changes)


@pytest.mark.parametrize("way", WRITERS)
def test_every_setting_of_every_server_refuses_what_would_be_two(way: str):
    writer = writers()[way]
    texts = ("1; error_log /tmp/x debug; thread_pool b threads=1", "on\nLoadModule x /x.so", "1\nuser: root")

    for name in known(writer.server):
        for text in texts:
            with pytest.raises((ConfigRejected, UsageError)):
                writer.write({**writer.usual, name: text})


@pytest.mark.parametrize("way", WRITERS)
@pytest.mark.parametrize("name", UNKNOWN)
def test_a_name_that_the_server_has_no_rule_for_is_refused(way: str, name: str):
    writer = writers()[way]

    with pytest.raises((ConfigRejected, UsageError)):
        writer.write({**writer.usual, name: 1})


@pytest.mark.parametrize("way", [way for way in WRITERS if "installed" not in way])
def test_what_the_built_in_space_holds_is_written(way: str):
    writer = writers()[way]

    assert writer.read(writer.write(writer.usual))


def write_or_refuse(writer: Writer, config: Config) -> tuple[Files, TunerError | None]:
    try:
        return writer.write(config), None
    except TunerError as error:
        return {}, error


def expect_one_value_each(writer: Writer, changes: Config) -> None:
    config = {**writer.usual, **changes}
    written, refused = write_or_refuse(writer, config)
    if refused is not None:
        # TargetError: a later line of the owner's own would win.
        assert isinstance(refused, (ConfigRejected, UsageError, TargetError))
        assert str(refused).isprintable()
        assert len(str(refused)) < 500
        return
    before = writer.read({**writer.before, **(writer.write(writer.usual) if writer.usual else {})})
    after = writer.read({**writer.before, **written})
    assert not after - before - owned(writer.server, config)
    for name, value in changes.items():
        assert name in known(writer.server)
        assert not isinstance(value, str) or value in known(writer.server)[name] or writer.server == "sysctl"
