from pathlib import Path

import pytest

from tests.unit.space.samples import load
from tests.unit.test_plugins import register
from tuner.errors import UsageError

KERNEL = [
    "kernel.randomize_va_space", "net.ipv4.tcp_syncookies", "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.eth0.rp_filter", "net.ipv4.conf.default.accept_redirects",
    "net.ipv6.conf.all.accept_redirects", "net.ipv4.conf.all.send_redirects",
    "net.ipv4.conf.all.secure_redirects", "net.ipv4.conf.all.accept_source_route",
    "net.ipv6.conf.lo.accept_source_route", "kernel.yama.ptrace_scope", "kernel.dmesg_restrict",
    "kernel.kptr_restrict", "kernel.unprivileged_bpf_disabled", "net.core.bpf_jit_harden",
    "kernel.core_pattern", "kernel.modprobe", "fs.protected_symlinks", "fs.suid_dumpable", "vm.mmap_min_addr",
    "net.ipv4.ip_forward", "net.ipv4.ip_unprivileged_port_start", "user.max_user_namespaces",
]  # fmt: skip


def space_of(name: str, server: str) -> str:
    return f'server: {server}\nparameters:\n  "{name}": {{kind: int, low: 0, high: 2, default: 1}}\n'


@pytest.mark.parametrize("name", [*KERNEL, "Kernel.Randomize_VA_Space", "net.ipv4.tcp_syncookies[0]"])
@pytest.mark.parametrize("server", ["sysctl", "demo"])
def test_no_space_can_tune_a_security_setting_of_the_kernel(tmp_path, name, server):
    with pytest.raises(
        UsageError, match=r"^demo\.yaml:3: .* is a security setting .*which tuner never changes"
    ):
        load(space_of(name, server), tmp_path)


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("nginx", "user"), ("nginx", "ssl_protocols"), ("nginx", "proxy_ssl_verify"), ("nginx", "limit_req"),
        ("apache", "User"), ("apache", "SSLCipherSuite"), ("apache", "AllowOverride"),
        ("php-fpm", "security.limit_extensions"), ("php-fpm", "listen.mode"), ("h2o", "user"),
    ],
)  # fmt: skip
def test_no_space_can_tune_whom_a_server_lets_in(tmp_path, server, name):
    with pytest.raises(UsageError, match="is a security setting"):
        load(space_of(name, server), tmp_path)


def test_a_derived_setting_is_no_way_around(tmp_path):
    text = (
        "server: sysctl\nparameters:\n  x: {kind: bool, default: on}\n"
        "derived:\n  net.ipv4.tcp_syncookies: {value: 0 if x else 1}\n"
    )

    with pytest.raises(
        UsageError, match=r"^demo\.yaml:5: derived\.net\.ipv4\.tcp_syncookies: .*security setting"
    ):
        load(text, tmp_path)


@pytest.mark.parametrize(
    "entry", [{"parameters": {"net.ipv4.tcp_syncookies": {"kind": "bool", "default": True}}}]
)
def test_an_entry_of_the_study_is_no_way_around(tmp_path, entry):
    with pytest.raises(
        UsageError, match=r"^space entry 2: .*security setting .*Remove this setting; no option allows"
    ):
        load(space_of("x", "sysctl"), tmp_path, entry, {"allow": ["risky"]})


@pytest.mark.parametrize(
    "name", ["net.core.somaxconn", "net.ipv4.tcp_wmem[1]", "net.ipv4.tcp_max_syn_backlog", "userid"]
)
def test_settings_of_speed_are_not_denied(tmp_path, name):
    assert load(space_of(name, "sysctl"), tmp_path).parameters[0].name == name


def test_what_a_foreign_adapter_denies_is_refused_in_the_spaces_of_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = 'class Zephyr:\n    name = "zephyr"\n    package = ""\n    denied = ("run-as*",)\n'
    register(tmp_path, "foreign_zephyr", "tuner.servers", {"zephyr": "foreign_zephyr:Zephyr"}, source)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(UsageError, match=r"^demo\.yaml:3: .*Run-As-User is a security setting"):
        load(space_of("Run-As-User", "zephyr"), tmp_path)
    assert load(space_of("Run-As-User", "demo"), tmp_path).parameters[0].name == "Run-As-User"


def test_an_adapter_that_does_not_state_what_it_denies_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    register(
        tmp_path, "foreign_silent", "tuner.servers", {"silent": "foreign_silent:Silent"}, "class Silent: 0"
    )
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(UsageError, match=r"server 'silent': .* does not say .*`denied = \(\)`"):
        load(space_of("x", "silent"), tmp_path)
