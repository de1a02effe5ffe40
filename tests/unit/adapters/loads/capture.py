"""Record a new golden case: run a load generator for real against the misbehaving server.

    python -m tests.unit.adapters.loads.capture wrk half_busy [--duration 1] [--close] …

writes tests/unit/adapters/loads/wrk/half_busy.{json,stdout,stderr,…} with the counts that the adapter reads
from it now. Check them against what the server says it sent (printed at the end) before you commit them.
"""

import argparse
import json
from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from tests.unit.adapters.loads.golden import ADAPTERS, FOLDER, expectation
from tuner.adapters.hosts.local import LocalHost
from tuner.errors import LoadFailed
from tuner.ports import Completed, Files, FileState, LoadGenerator, Workload
from tuner.testing.misbehaving_server import BODY, refusing, response_bytes, serving


def main() -> None:
    options = _options()
    behaviour = options.behaviour
    with (
        TemporaryDirectory() as directory,
        refusing() if behaviour == "refused" else serving(behaviour) as server,
    ):
        workload = Workload(
            url=options.url or server.url,
            connections=options.connections,
            keepalive=not options.close,
            duration_s=options.duration,
            rate_rps=options.rate,
            requests_total=options.requests,
            protocol=options.protocol,
            body_bytes=options.body_bytes,
            response_bytes=None if options.url else response_bytes(keepalive=not options.close),
            directory=PurePosixPath(directory),
        )
        load = ADAPTERS[options.adapter](**options.options)
        completed, outputs = run(load, workload, options.open_files, without=options.without)
        write(load, options.options, options.name or behaviour, completed, outputs, workload)
        print(f"the server saw {server.requests} requests and answered {server.correct} correctly")  # noqa: T201


def run(
    load: LoadGenerator, workload: Workload, open_files: int | None, *, without: Collection[str] = ()
) -> tuple[Completed, Files]:
    """Run a generator as the core does; or without some options, as others did."""
    host = LocalHost()
    for path, content in load.files(workload).items():
        host.write(path, FileState(content=content, mode=0o644))
    command = tuple(word for word in load.command(workload) if word not in without)
    completed = host.run(command, timeout_s=workload.duration_s + 20, open_files=open_files)
    completed = replace(completed, duration_s=round(completed.duration_s, 3))
    states = {path: host.read(path).content for path in load.outputs(workload)}
    return completed, {path: content for path, content in states.items() if content is not None}


def write(
    load: LoadGenerator,
    options: dict[str, Any],
    name: str,
    completed: Completed,
    outputs: Files,
    workload: Workload,
) -> None:
    """Store the case and print what is expected of it from now on."""
    folder = FOLDER / load.name
    folder.mkdir(exist_ok=True)
    for old in folder.glob(f"{name}.*"):
        old.unlink()
    (folder / f"{name}.stdout").write_bytes(completed.stdout)
    if completed.stderr:
        (folder / f"{name}.stderr").write_bytes(completed.stderr)
    for path, content in outputs.items():
        (folder / f"{name}.{path.name}").write_bytes(content)
    workload = replace(workload, directory=PurePosixPath("/golden"))
    outputs = {workload.directory / path.name: content for path, content in outputs.items()}
    try:
        expected = expectation(load.parse(completed, outputs, workload))
    except LoadFailed as failure:
        expected = {"load_failed": str(failure).split(".")[0]}
    case = {
        **({"options": options} if options else {}),
        "workload": {key: value for key, value in asdict(workload).items() if key != "directory"},
        "completed": {"returncode": completed.returncode, "duration_s": completed.duration_s},
        "outputs": sorted(path.name for path in outputs),
        "expected": expected,
    }
    (folder / f"{name}.json").write_text(json.dumps(case, indent=2) + "\n")
    print(json.dumps(case, indent=2))  # noqa: T201


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("adapter", choices=sorted(ADAPTERS))
    parser.add_argument("behaviour")
    parser.add_argument("--options", type=json.loads, default={}, help="of the adapter, as JSON")
    parser.add_argument("--name", help="name of the case, when it is not the behaviour's")
    parser.add_argument("--url", help="another server than the misbehaving one")
    parser.add_argument("--duration", type=float, default=1)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--requests", type=int, help="end after so many; --duration is the time limit")
    parser.add_argument("--protocol", default="http/1.1")
    parser.add_argument("--close", action="store_true", help="one connection for each request")
    parser.add_argument("--body-bytes", type=int, default=len(BODY))
    parser.add_argument("--open-files", type=int)
    parser.add_argument("--without", nargs="*", default=(), help="options to leave out, as in --without=-r")
    return parser.parse_args()


if __name__ == "__main__":
    main()
