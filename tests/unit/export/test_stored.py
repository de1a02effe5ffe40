"""What exports need of a host, kept as JSON values."""

import json
from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from tuner.adapters.servers.apache.builds import DEBIAN, write_place
from tuner.export import Rendered, Rewritten, differences_from_json, differences_to_json
from tuner.ports import Service, Upstream

PATHS = st.sampled_from([PurePosixPath("/etc/a.conf"), PurePosixPath("/proc/sys/net/core/somaxconn")])
FILES = st.dictionaries(PATHS, st.binary(max_size=30))
LOWERED = st.dictionaries(st.sampled_from("ab"), st.tuples(st.integers(), st.floats(0, 9)))
SERVICES = st.builds(
    Service, name=st.just("nginx"), check=st.none() | st.just(("nginx", "-t")), stop=st.just(("a", "b")),
    start=st.just(("c",)), reload=st.none() | st.just(("d", "e")), is_systemd=st.booleans(),
    pid_file=st.just(PurePosixPath("/run/nginx.pid")),
)  # fmt: skip
REWRITTEN = st.builds(
    Rewritten, before=FILES, after=FILES, service=st.none() | SERVICES, lowered=LOWERED,
    directory=st.just(PurePosixPath("/etc")), by_hand=st.dictionaries(st.text(), st.text()),
    modes=st.dictionaries(PATHS, st.sampled_from([0o600, 0o644])),
)  # fmt: skip
BACKENDS = st.builds(
    Upstream, port=st.integers(0, 9), socket=st.none() | st.just(PurePosixPath("/run/php.sock"))
)
PLACES = st.just(write_place(DEBIAN, "apache"))
RENDERED = st.builds(
    Rendered, default=FILES, winner=FILES, drop_in=st.none() | PLACES, reason=st.text(),
    lowered=LOWERED, backend=st.none() | BACKENDS, installed=st.none() | REWRITTEN,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["apache", "nginx"]), REWRITTEN | RENDERED))
def test_what_was_kept_is_read_as_it_was(differences: dict[str, Rendered | Rewritten]) -> None:
    kept = json.loads(json.dumps(differences_to_json(differences)))

    assert differences_from_json(kept) == differences
