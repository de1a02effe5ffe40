"""What of a change fits containers: files of an image, settings of a pod, and what only a node can have."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tuner.deploy.systemd_limits import UNITS
from tuner.export.host_change import FileChange, HostChange, SettingChange

SAFE = {
    "kernel.shm_rmid_forced": "",
    "net.ipv4.ip_local_port_range": "",
    "net.ipv4.tcp_syncookies": "",
    "net.ipv4.ping_group_range": "1.18",
    "net.ipv4.ip_unprivileged_port_start": "1.22",
    "net.ipv4.ip_local_reserved_ports": "1.27",
    "net.ipv4.tcp_keepalive_time": "1.29",
    "net.ipv4.tcp_fin_timeout": "1.29",
    "net.ipv4.tcp_keepalive_intvl": "1.29",
    "net.ipv4.tcp_keepalive_probes": "1.29",
    "net.ipv4.tcp_rmem": "1.32",
    "net.ipv4.tcp_wmem": "1.32",
}
"""Keys that a kubelet allows without being told, and since which version of Kubernetes; empty for always
(kubernetes.io: Using sysctls in a Kubernetes Cluster, "Safe and Unsafe Sysctls")."""

NAMESPACED = (
    *("kernel.shm*", "kernel.msg*", "kernel.sem", "fs.mqueue.*"),
    *("net.core.somaxconn", "net.core.optmem_max", "net.core.txrehash", "net.ipv4.*", "net.ipv6.*"),
)
"""Keys that every pod may have of its own; of net.core most are one for the node (net/core/sysctl_net_core.c:
those of `netns_core_table`)."""
OF_NODE = (
    *("net.ipv4.tcp_mem", "net.ipv4.udp_mem", "net.ipv4.tcp_max_orphans", "net.ipv4.tcp_low_latency"),
    *("net.ipv4.inet_peer_*", "net.ipv4.cipso_*", "net.ipv4.fib_sync_mem", "net.ipv4.ipfrag_secret_interval"),
)
"""Those of net.ipv4 that a new network namespace does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings:
    """Values of the kernel by who may set them."""

    safe: tuple[SettingChange, ...]
    unsafe: tuple[SettingChange, ...]
    """A pod may have them where its node allows that."""
    of_node: tuple[SettingChange, ...]

    @property
    def of_pod(self) -> tuple[SettingChange, ...]:
        """Return what a pod may have of its own."""
        return (*self.safe, *self.unsafe)


def split_settings(change: HostChange) -> ContainerSettings:
    """Sort the values of the kernel by who may set them."""
    own = [each for each in change.settings if _is_namespaced(each)]
    return ContainerSettings(
        safe=tuple(each for each in own if each.key in SAFE),
        unsafe=tuple(each for each in own if each.key not in SAFE),
        of_node=tuple(each for each in change.settings if each not in own),
    )


def _is_namespaced(setting: SettingChange) -> bool:
    def fits(patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(setting.key, pattern) for pattern in patterns)

    return setting.is_sysctl and fits(NAMESPACED) and not fits(OF_NODE)


def image_files(change: HostChange) -> tuple[FileChange, ...]:
    """Return the files that a container has as well: those of systemd it has not."""
    return tuple(each for each in change.files if not each.path.is_relative_to(UNITS))


def find_open_files(change: HostChange) -> tuple[int, ...]:
    """Return the limits of open files that units are given, as containers take them elsewhere."""
    texts = (each.after or b"" for each in change.files if each.path.is_relative_to(UNITS))
    return tuple(int(limit) for text in texts for limit in re.findall(rb"(?m)^LimitNOFILE=(\d+)$", text))


def describe_node(settings: ContainerSettings) -> list[str]:
    """Return lines about what the nodes have to be given."""
    if not settings.of_node:
        return []
    return [
        "ON THE NODE, as no container can set these (/etc/sysctl.d, or --format tuned):",
        *(f"  {name_setting(each)} = {each.after} (was {each.before})" for each in settings.of_node),
    ]


def name_setting(setting: SettingChange) -> str:
    """Return the key of a sysctl, or the path of another value."""
    return setting.key if setting.is_sysctl else str(setting.path)
