"""No value, and no name, of a setting adds a directive to a server's files: it is written or refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.more import examples
from tests.property.directives import Writer, beyond, known, writers
from tests.property.hostile_values import scalars
from tuner.errors import ConfigRejected, TargetError, TunerError, UsageError
from tuner.ports import Config, Files, Scalar

WRITERS = (
    "nginx", "apache-event", "h2o", "sysctl-net", "nginx-installed", "apache-event-installed",
    "apache-mpm", "apache-prefork", "apache-worker", "apache-prefork-installed",
    "h2o-installed", "php-fpm-installed", "sysctl-net-installed", "caddy", "haproxy",
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
@settings(max_examples=examples(150), deadline=None)
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
                pytest.fail(f"{name!r}: {text!r} is written: {writer.write({**writer.usual, name: text})}")


@pytest.mark.parametrize("way", WRITERS)
def test_a_name_that_the_server_has_no_rule_for_is_refused(way: str):
    writer = writers()[way]

    for name in UNKNOWN:
        with pytest.raises((ConfigRejected, UsageError)):
            pytest.fail(f"{name!r} is written: {writer.write({**writer.usual, name: 1})}")


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
    assert not beyond(writer, config, written)
    for name, value in changes.items():
        assert name in known(writer.server)
        assert not isinstance(value, str) or value in known(writer.server)[name] or writer.server == "sysctl"
