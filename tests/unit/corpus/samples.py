"""Studies of a corpus that nobody ran."""

from collections.abc import Mapping

from tuner.corpus.corpus_study import CorpusStudy, Shipped, Surroundings, Tried
from tuner.ports import Scalar

HERE = Surroundings(
    cpu="Example CPU", cores=4, memory_mib=8192, kernel="6.18.44", co_located=True,
    servers={"nginx": "1.22.1"},
    workload={"keepalive": True, "tls": False, "protocol": "http1", "connections": 100, "page_bytes": 1024},
)  # fmt: skip
DEFAULTS: Mapping[str, Scalar] = {
    "sendfile": True, "open_file_cache": 0, "keepalive_requests": 1000, "worker_connections": 768,
}  # fmt: skip


def try_out(changes: Mapping[str, Scalar], log_gain: float | None, *, is_feasible: bool = True) -> Tried:
    return Tried(changes=changes, log_gain=log_gain, deviation=0.03, starts=2, is_feasible=is_feasible)


def make_study(*tried: Tried, number: int = 1, here: Surroundings = HERE) -> CorpusStudy:
    """Return a study in which cached files are worth 20 %, or what is given."""
    found = tried or (
        try_out({"open_file_cache": 1000}, 0.18),
        try_out({"open_file_cache": 1000, "sendfile": False}, 0.08),
        try_out({"sendfile": False}, -0.1),
        try_out({"worker_connections": 4096}, 0.0),
        try_out({"keepalive_requests": 100}, None, is_feasible=False),
    )
    return CorpusStudy(
        id=f"{number:012x}", tuner="0.1.0", finished="2026-01-01", metric="goodput", surroundings=here,
        defaults=DEFAULTS, tried=found,
        shipped=Shipped(changes={"open_file_cache": 1000}, log_gain=0.18, low=0.12, high=0.24),
    )  # fmt: skip
