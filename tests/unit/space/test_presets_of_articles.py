"""What the source articles set in the kernel, as presets whose every value is used or named."""

from pathlib import Path

import pytest

from tests.unit.space.samples import facts
from tests.unit.space.test_built_in_spaces import in_force
from tuner.space import Preset, describe_presets, load_space

RECYCLED = "net.ipv4.tcp_tw_recycle"


def fit(name: str, *, sandbox: bool) -> Preset:
    host = facts(current=in_force("sysctl-net"), sandbox=sandbox, installed=not sandbox, loopback=sandbox)
    space = load_space(["sysctl-net"], facts=host, base=Path("/"))
    return next(preset for preset in space.open().presets if preset.name == name)


def as_written(name: str) -> dict[str, object]:
    return next(dict(each["values"]) for each in describe_presets("sysctl-net") if each["name"] == name)


@pytest.mark.parametrize("name", ["article-2004-kernel", "article-2015-kernel"])
@pytest.mark.parametrize("sandbox", [True, False])
def test_every_value_is_used_as_it_is_written_or_named_with_the_reason(name: str, *, sandbox: bool):
    preset = fit(name, sandbox=sandbox)
    written = as_written(name)

    assert preset.values
    assert preset.values.keys() | preset.adjusted.keys() == written.keys()
    assert {name: written[name] for name in preset.values.keys() - preset.adjusted.keys()} == {
        name: value for name, value in preset.values.items() if name not in preset.adjusted
    }
    assert preset.adjusted[RECYCLED].startswith("removed in Linux 4.12")
    assert RECYCLED not in preset.values


def test_what_a_sandbox_cannot_have_is_named():
    adjusted = fit("article-2015-kernel", sandbox=True).adjusted

    assert (
        adjusted["net.core.rmem_max"]
        == "this setting is one value for the whole host, which a sandbox does not touch"
    )
    assert adjusted["net.ipv4.tcp_tw_reuse"] == "this setting has no effect on load over loopback"
    assert adjusted["net.ipv4.tcp_timestamps"].startswith("its risk is risky")
    assert "tcp_syncookies" in adjusted["net.ipv4.tcp_max_syn_backlog"]


def test_a_real_host_has_what_a_sandbox_cannot_have():
    preset = fit("article-2015-kernel", sandbox=False)

    assert preset.values["net.core.rmem_max"] == 16777216
    assert preset.values["net.ipv4.ip_local_port_range[0]"] == 10000
    assert "1024" in preset.adjusted["net.ipv4.ip_local_port_range[0]"]
