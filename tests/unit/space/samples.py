"""A small space that uses the whole language, and short ways to load one."""

import math
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from tuner.space import Space, SpaceFacts, load_space

HOST = {"cores": 2, "memory_mib": 4096, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096}

WHOLE = """\
    # yaml-language-server: $schema=space.schema.json
    space: whole
    server: demo
    title: Every part of the language
    parameters:
      processes: {kind: int, low: 1, high: 4 * cores, scale: log, default: cores, internal: true}
      threads:
        kind: int
        low: 1
        high: 512
        scale: log
        default: 25
        unit: threads
        why: More threads answer more clients at once.
        source: the manual
      started: {kind: int, low: 1, high: processes, default: "min(2, processes)"}
      spare: {kind: int, low: threads, high: threads * (processes + 1), scale: log, default: threads * 2}
      keepalive: {kind: bool, default: on}
      timeout_s: {kind: float, low: 0.1, high: 30, scale: log, unit: s, default: 5, when: keepalive}
      requests:
        {kind: int, low: 10, high: 100000, scale: log, special: {unlimited: 0}, default: 100, when: keepalive}
      buffer.size: {kind: int, low: 4096, high: 1048576, step: 4096, scale: log, unit: bytes, default: 8192}
      chunk: {kind: int, low: 0, high: 1000, step: 10, default: 100, unit: KiB}
      share: {kind: float, low: 0, high: 1, step: 0.125, default: 0.5}
      slack: {kind: float, low: 0, high: share + 1, default: 0.25}
      accept: {kind: categorical, choices: [data, none, on, off], default: on, apply: live}
      "pair[0]": {kind: int, low: 1, high: 100, default: 10}
      "pair[1]": {kind: int, low: "pair_0", high: 200, default: 20}
      log: {kind: bool, default: yes, risk: semantic}
      unsafe: {kind: bool, default: no, risk: risky}
    derived:
      workers: {value: processes * threads, why: One thread serves one request.}
      limit: {value: "max(64, threads)", unit: threads}
      ratio: {value: threads / processes, kind: float}
      per_process: {value: threads / processes, internal: yes}
      kept: {value: "'yes' if keepalive and requests == 0 else 'no'", when: keepalive}
    constraints:
      - {rule: workers <= 40 * connections, why: Memory ends before.}
      - {rule: timeout_s < 60}
    presets:
      expert: {title: As experts do, source: a book, values: {processes: 4, started: 4, requests: unlimited}}
      quiet: {values: {log: off, keepalive: off}}
    dead:
      old_setting: removed in version 2
"""

DEFAULT = {
    "processes": 2, "threads": 25, "started": 2, "spare": 50, "keepalive": True, "timeout_s": 5.0,
    "requests": 100, "buffer.size": 8192, "chunk": 100, "share": 0.5, "slack": 0.25, "accept": "on",
    "pair[0]": 10, "pair[1]": 20, "log": True, "unsafe": False,
    "workers": 50, "limit": 64, "ratio": 12.5, "per_process": 12, "kept": "no",
}  # fmt: skip
"""The configuration of the whole sample in which nothing is tuned."""


def facts(**changes: object) -> SpaceFacts:
    """Facts of a small host; names of facts and of SpaceFacts' own fields can be changed."""
    own = {
        name: changes.pop(name)
        for name in ("versions", "current", "withheld", "exists", "sandbox", "loopback", "installed", "load")
        if name in changes
    }
    return SpaceFacts(names={**HOST, **changes}, **own)


def load(text: str, folder: Path, *refinements: Mapping[str, object], **changes: object) -> Space:
    """Load the text of a space file, with refinements after it."""
    (folder / "demo.yaml").write_text(dedent(text), encoding="utf-8")
    return load_space(["demo.yaml", *refinements], facts=facts(**changes), base=folder)


def with_parameter(body: str, rest: str = "") -> str:
    """Write a space with `x` on line 4, beside `n` (int, 1 to 9, default 3) and `flag` (bool, off)."""
    return (
        "space: one\nserver: demo\nparameters:\n"
        f"  x: {{{body}}}\n"
        "  n: {kind: int, low: 1, high: 9, default: 3}\n"
        "  flag: {kind: bool, default: off}\n" + rest
    )


def close(left: float, right: float) -> bool:
    """Compare numbers that went through a logarithm."""
    return math.isclose(left, right, rel_tol=1e-9)
