"""Which studies the drawn servers are put to, and the settings that they may depend on, by name and values.

    python -m benchmarks.campaign.spaces            # writes benchmarks/campaign/settings.json anew

The settings are kept in that file, so that the truth of a drawn server does not change with the spaces: a
setting that a later space adds does nothing, one that it leaves out stays at its default. Writing the file
anew makes other servers, and results of before and after cannot be compared.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tuner.ports import Config, Scalar
from tuner.space import Parameter, Space, SpaceFacts, load_space
from tuner.study.settings import LoadSettings

FILE = Path(__file__).with_name("settings.json")
CONNECTIONS = 100
DRAWS = 400
"""Random points of a space, from which the range of each number is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A kind of study."""

    name: str
    space: str
    servers: tuple[str, ...]
    keepalive: bool
    page_bytes: int
    deploy_s: float
    """Until the server answers."""
    stop_s: float


FAMILIES = (
    Family(
        name="nginx, keep-alive", space="nginx", servers=("nginx",), keepalive=True,
        page_bytes=1_024, deploy_s=0.10, stop_s=0.05,
    ),
    Family(
        name="Apache, close", space="apache-event", servers=("apache",), keepalive=False,
        page_bytes=1_024, deploy_s=0.35, stop_s=0.15,
    ),
    Family(
        name="kernel below nginx", space="sysctl-net", servers=("nginx", "sysctl"), keepalive=True,
        page_bytes=102_400, deploy_s=0.12, stop_s=0.05,
    ),
    Family(
        name="nginx, close", space="nginx", servers=("nginx",), keepalive=False,
        page_bytes=20_480, deploy_s=0.10, stop_s=0.05,
    ),
    Family(
        name="Apache, keep-alive", space="apache-event", servers=("apache",), keepalive=True,
        page_bytes=20_480, deploy_s=0.35, stop_s=0.15,
    ),
)  # fmt: skip

KERNEL: Mapping[str, Scalar] = {
    "net.core.somaxconn": 4096,
    "net.ipv4.ip_early_demux": 1,
    "net.ipv4.tcp_abort_on_overflow": 0,
    "net.ipv4.tcp_autocorking": 1,
    "net.ipv4.tcp_backlog_ack_defer": 1,
    "net.ipv4.tcp_early_demux": 1,
    "net.ipv4.tcp_fin_timeout": 60,
    "net.ipv4.tcp_limit_output_bytes": 4194304,
    "net.ipv4.tcp_max_tw_buckets": 32768,
    "net.ipv4.tcp_min_tso_segs": 2,
    "net.ipv4.tcp_no_metrics_save": 0,
    "net.ipv4.tcp_notsent_lowat": 4294967295,
    "net.ipv4.tcp_pingpong_thresh": 1,
    "net.ipv4.tcp_rmem[1]": 131072,
    "net.ipv4.tcp_rmem[2]": 33554432,
    "net.ipv4.tcp_rto_min_us": 200000,
    "net.ipv4.tcp_slow_start_after_idle": 1,
    "net.ipv4.tcp_timestamps": 1,
    "net.ipv4.tcp_tso_rtt_log": 9,
    "net.ipv4.tcp_tso_win_divisor": 3,
    "net.ipv4.tcp_wmem[1]": 16384,
    "net.ipv4.tcp_wmem[2]": 4194304,
}
"""What Linux 6.18 has active in a new network namespace with 8 GiB."""
FACTS = SpaceFacts(
    names={
        "cores": 2, "memory_mib": 7900, "connections": CONNECTIONS, "open_files_max": 1048576,
        "somaxconn": 4096,
    },
    versions={"nginx": (1, 22, 1), "apache": (2, 4, 71), "sysctl": (6, 18, 44)},
    current=KERNEL,
)  # fmt: skip

IDLE = frozenset(
    {
        # One page, 100 connections over loopback: times, counts and sizes that no request comes near.
        "accept_mutex_delay", "listen_backlog", "open_file_cache_inactive", "open_file_cache_min_uses",
        "open_file_cache_valid", "output_buffers_number", "worker_connections",
        "FlushMaxPipelined", "ListenBacklog", "MaxMemFree",
        "net.core.somaxconn", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_no_metrics_save",
        "net.ipv4.tcp_rmem[2]", "net.ipv4.tcp_wmem[1]", "net.ipv4.tcp_wmem[2]",
        # They act for some values of others only.
        "EnableMMAP", "ReadBufferSize",
    }
)  # fmt: skip
"""Settings on which no truth depends, since they cannot act under the loads of this benchmark."""
OF_KEPT_CONNECTIONS = frozenset(
    {
        "keepalive_requests", "tcp_nodelay", "AsyncRequestWorkerFactor", "MaxKeepAliveRequests",
        "net.ipv4.tcp_slow_start_after_idle",
    }
)  # fmt: skip
OF_NEW_CONNECTIONS = frozenset({"listen_deferred", "AcceptFilter", "net.ipv4.tcp_max_tw_buckets"})
OF_LARGE_PAGES: Mapping[str, int] = {
    "output_buffers_size": 4096,
    "sendfile_max_chunk": 61440,
    "FlushMaxThreshold": 8192,
    "net.ipv4.tcp_limit_output_bytes": 16384,
    "net.ipv4.tcp_min_tso_segs": 61440,
    "net.ipv4.tcp_notsent_lowat": 4096,
    "net.ipv4.tcp_slow_start_after_idle": 4096,
    "net.ipv4.tcp_tso_rtt_log": 61440,
    "net.ipv4.tcp_tso_win_divisor": 61440,
}
"""Setting → bytes of a page above which it acts."""


@cache
def load_family(family: Family) -> Space:
    """Load the space of a family as it is today, for its load."""
    return load_space([family.space], facts=find_facts(family), base=Path("/"))


def find_facts(family: Family) -> SpaceFacts:
    """Return what the space of a family knows of its host and load."""
    load = LoadSettings(connections=CONNECTIONS, keepalive=family.keepalive)
    known = load.facts(page_bytes=family.page_bytes, is_loopback=True, is_installed=False)
    return replace(FACTS, load=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting as it was when the file was written."""

    name: str
    default: Scalar
    """Where it does not exist by default, what it is once it does."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    special: tuple[Scalar, ...] = ()
    """Values apart from the range."""
    choices: tuple[Scalar, ...] = ()
    """Of a setting without numbers; empty for others."""
    is_conditional: bool = False
    """Whether it exists for some values of others only."""

    def acts_under(self, family: Family) -> bool:
        """Return whether a truth may depend on it."""
        idle = OF_NEW_CONNECTIONS if family.keepalive else OF_KEPT_CONNECTIONS
        return self.name not in IDLE | idle and OF_LARGE_PAGES.get(self.name, 0) < family.page_bytes


@cache
def settings_of(space: str) -> tuple[Setting, ...]:
    """Read the settings of a space from the file."""
    return tuple(_from_json(each) for each in json.loads(FILE.read_text())[space])


def _from_json(data: Mapping[str, Any]) -> Setting:
    lists = {key: tuple(data[key]) for key in ("special", "choices") if key in data}
    return Setting(**{**data, **lists})


def describe(space: Space) -> Iterator[dict[str, Any]]:
    """Yield what is kept of every setting that may be tuned."""
    rng = Random(0)  # noqa: S311 - no secret
    configs = [space.decode(_draw_point(space, rng)) for _ in range(DRAWS)]
    default = space.default()
    for parameter in space.parameters:
        if not parameter.pinned:
            yield _describe(parameter, default, [config for config in configs if parameter.name in config])


def _draw_point(space: Space, rng: Random) -> dict[str, Scalar]:
    """Draw each coordinate, now and then at an end of its range."""
    point: dict[str, Scalar] = {}
    for each in space.dimensions:
        if each.kind == "categorical":
            point[each.name] = rng.choice(each.choices)
        else:
            low, high = each.low, each.high
            value = rng.choice([low, high, rng.uniform(low, high)])
            point[each.name] = round(value) if each.kind == "int" and not each.step else value
            if each.step:
                point[each.name] = low + round((value - low) / each.step) * each.step
    return point


def _describe(parameter: Parameter, default: Config, configs: list[dict[str, Scalar]]) -> dict[str, Any]:
    kept: dict[str, Any] = {"name": parameter.name}
    seen = [config[parameter.name] for config in configs]
    usual = parameter.default if isinstance(parameter.default, bool | int | float | str) else seen[0]
    kept["default"] = default.get(parameter.name, usual)
    if parameter.is_numeric:
        special = tuple(parameter.special.values())
        numbers = [value for value in seen if value not in special and not isinstance(value, str)]
        kept |= {"low": min(numbers), "high": max(numbers), "log": parameter.log}
        kept |= {"whole": parameter.kind == "int"}
        kept |= {"special": special} if special else {}
    else:
        kept["choices"] = parameter.choices or (False, True)
    return kept | ({"is_conditional": True} if parameter.when is not None else {})


def main() -> int:
    """Write the file."""
    spaces = {family.space: load_space([family.space], facts=FACTS, base=Path("/")) for family in FAMILIES}
    found = {name: [*describe(space)] for name, space in spaces.items()}
    lines = (
        f'  "{name}": [\n' + ",\n".join(f"    {json.dumps(each)}" for each in settings) + "\n  ]"
        for name, settings in found.items()
    )
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
