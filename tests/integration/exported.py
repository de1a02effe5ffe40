"""A winner that changes all there is on a host, written in every format, and what judges the formats."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from tests.unit.simulated_study import make_summary
from tuner.export import Rewritten, export
from tuner.ports import Service

CONSUMERS = Path(__file__).parents[2] / ".tools/consumers"
NGINX = Service(
    name="nginx", check=("nginx", "-t"), stop=("service", "nginx", "stop"),
    start=("service", "nginx", "start"), reload=("service", "nginx", "reload"),
)  # fmt: skip
MAIN = PurePosixPath("/etc/nginx/nginx.conf")
SITE = PurePosixPath("/etc/nginx/sites-available/default")
UNIT = PurePosixPath("/etc/systemd/system/nginx.service.d/zz-tuner.conf")
LIMITS = b"[Service]\nLimitNOFILE=65536\nTasksMax=4096\n"
KERNEL = PurePosixPath("/proc/sys")


def changed() -> dict[str, Rewritten]:
    """Return files with all that is hard to write: no last line end, other bytes than UTF-8, a new file."""
    nginx = Rewritten(
        before={MAIN: b"worker_processes auto;\n$old `x` \\\n", SITE: b"# M\xfcnchen\n\nlisten 80;"},
        after={
            MAIN: b"worker_processes 3;\n$old `x` \\\nEND_OF_FILE\n",
            SITE: b"# M\xfcnchen\n\n```\nlisten 80 backlog=9;",
            UNIT: LIMITS,
        },
        service=NGINX,
        by_hand={"aio": "nginx: it is not compiled in"},
    )
    kernel = {
        KERNEL / "net/core/somaxconn": (b"4096\n", b"9000\n"),
        KERNEL / "net/ipv4/tcp_wmem": (b"4096\t16384\t4194304\n", b"4096\t65536\t4194304\n"),
        KERNEL / "net/core/netdev_max_backlog": (b"1000\n", b"5000\n"),
        PurePosixPath("/sys/kernel/mm/transparent_hugepage/enabled"): (
            b"[always] madvise never\n",
            b"never\n",
        ),
    }
    of_kernel = {
        name: Rewritten(
            before={path: old for path, (old, _) in kernel.items() if (KERNEL in path.parents) == is_sysctl},
            after={path: new for path, (_, new) in kernel.items() if (KERNEL in path.parents) == is_sysctl},
            service=None,
        )
        for name, is_sysctl in (("sysctl", True), ("sysfs", False))
    }
    return {"nginx": nginx, **of_kernel}


def write_format(form: str, folder: Path) -> dict[str, bytes]:
    """Write that winner below a folder, and return its files by name."""
    files = export(make_summary(searches=4), form, rendered=changed())
    put(files, folder)
    return files


def put(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def consumer(name: str) -> Path:
    """Return where `make setup` unpacked what judges a format; skip the test where it could not."""
    place = CONSUMERS / name
    if not place.exists():
        pytest.skip(f"{place} is missing; run `make setup` or `make test-more`")
    return place


def run(*argv: str, cwd: Path | None = None, **environment: str) -> str:
    """Run a command that must succeed, and return what it printed."""
    done = subprocess.run(
        argv, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stderr + done.stdout


def run_python(program: str, *argv: str, modules: Path) -> str:
    """Run a program of Python with the modules of a package that is unpacked and not installed."""
    return run(
        sys.executable, "-c", program, *argv, PYTHONPATH=str(modules / "usr/lib/python3/dist-packages")
    )


def validate_compose(document: dict[str, Any]) -> None:
    """Let the published schema of Compose judge a document. Raises jsonschema.ValidationError."""
    schema = json.loads((consumer("compose") / "compose-spec.json").read_text())
    jsonschema.validators.validator_for(schema)(schema).validate(document)


def validate_kubernetes(document: dict[str, Any], name: str) -> None:
    """Let the published schema of a kind judge a document. Raises jsonschema.ValidationError."""
    place = consumer("kubernetes")
    contents = {path.name: json.loads(path.read_text()) for path in place.iterdir()}
    registry = Registry().with_resources(
        (each, Resource(contents=schema, specification=DRAFT7)) for each, schema in contents.items()
    )
    jsonschema.Draft7Validator(contents[f"{name}.json"], registry=registry).validate(document)
