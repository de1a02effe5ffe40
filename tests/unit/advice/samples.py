"""Advice that nobody gave."""

from dataclasses import replace

from tuner.advice.findings import Advice, Evidence, Finding, Level, Proposal

HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> \x1b[2J `z` [x](y) |"
)
PROPOSAL = Proposal(
    name="worker_connections", current=20, value=4096, place="/etc/nginx/nginx.conf:8",
    why="Each worker holds more connections; each takes memory.", hint=("worker_connections", 4096),
)  # fmt: skip
BITES = Finding(
    server="nginx", rule="nginx.worker_connections", level=Level.NOW,
    limit="Connections of a worker: worker_connections 20", harm="fails",
    evidence=(Evidence(text="84 lines in the last hour", source="/var/log/nginx/error.log"),),
    proposals=(PROPOSAL,), cost="About 250 bytes for each connection slot.",
    source="https://nginx.org/en/docs/ngx_core_module.html#worker_connections; src/event",
)  # fmt: skip
NEAR = replace(BITES, rule="nginx.open_files", level=Level.NEXT, limit="Open files per worker: 1024")
TRY = replace(
    BITES, rule="hint.open_file_cache", level=Level.TRY, limit="open_file_cache", harm="slows", cost="",
    evidence=(Evidence(text="The hint of its search space: 4 to 1 that it helps"),),
    proposals=(replace(PROPOSAL, name="open_file_cache", current="off", value=1000, place=""),),
)  # fmt: skip


def make_advice(*findings: Finding, host: str = "local") -> Advice:
    """Return advice with these findings; with one of each level when there are none."""
    return Advice(
        host=host, servers=(), findings=findings or (BITES, NEAR, TRY),
        unread=("nginx: its error log /var/log/nginx/error.log: it cannot be read. Run as root",), look_s=1.0,
    )  # fmt: skip


def make_hostile() -> Advice:
    """Return advice whose every text was written by an attacker."""
    proposal = replace(PROPOSAL, name=HOSTILE, current=HOSTILE, value=HOSTILE, place=HOSTILE, why=HOSTILE)
    finding = replace(
        BITES, limit=HOSTILE, evidence=(Evidence(text=HOSTILE, source=HOSTILE),), proposals=(proposal,),
        cost=HOSTILE, source=HOSTILE,
    )  # fmt: skip
    return replace(make_advice(finding), unread=(HOSTILE,))
