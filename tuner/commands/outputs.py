"""Writes the report and the exports of a study into its folder."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tuner.campaign.prepare import Setup, prepare
from tuner.commands.session import Reading
from tuner.deploy.managed import ManagedTarget
from tuner.errors import ConfigRejected, TargetError
from tuner.export import Rendered, Rewritten, export, find_format, formats_of, paths_to_read, render_both
from tuner.ports import Config, Files, Host, Installation, InstalledServer, PrivateServer
from tuner.study import Study
from tuner.study.folder import list_files, write_file

REPORT = "report.html"
EXPORTS = "exports"


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Where a study's report and exports are."""

    report: str | None
    exports: tuple[str, ...]


def write_results(reading: Reading) -> Results:
    """Write the report, and every export that the study's servers have when there is a winner."""
    report = str(write_report(reading, None))
    winner = reading.summary.winner
    if winner is None or reading.summary.is_held_back:
        return Results(report=report, exports=())
    setup = reading.setup or prepare(reading.settings)
    reading = replace(reading, setup=setup)
    forms = formats_of(_render(reading, setup, winner.config))
    written = (path for form in forms for path in write_export(reading, form, None))
    return Results(report=report, exports=tuple(map(str, written)))


def find_results(settings: Study) -> Results:
    """Find what an earlier run wrote. Raises UsageError when the exports are a link or another user's."""
    folder = settings.folder
    report = folder / REPORT
    return Results(
        report=str(report) if report.is_file() and not report.is_symlink() else None,
        exports=tuple(map(str, list_files(folder / EXPORTS, study_folder=folder))),
    )


def write_report(reading: Reading, output: Path | None) -> Path:
    """Write the report; beside the study by default."""
    from tuner.report.page import render_report

    folder = reading.settings.folder
    # A name that is not UTF-8 comes from Python with signs that cannot be encoded.
    content = render_report(reading.summary).encode(errors="replace")
    if output is not None:
        _write(output, content)
        return output
    write_file(folder / REPORT, content, study_folder=folder)
    return folder / REPORT


def write_export(reading: Reading, form: str, output: Path | None) -> Sequence[Path]:
    """Write one export format.

    Raises:
        UsageError: an unknown format, a server that is not tuned, nothing confirmed yet, or a file in the
            study's folder is a link or another user's.
        TargetError: the folder cannot be written.
    """
    find_format(form)
    rendered: Mapping[str, Rendered | Rewritten] = {}
    installed: Files = {}
    winner = reading.summary.winner
    if winner is not None:
        setup = reading.setup or prepare(reading.settings)
        rendered = _render(reading, setup, winner.config)
        installed = _read(setup.host, paths_to_read(form, rendered))
    files = export(reading.summary, form, rendered=rendered, installed=installed)
    if output is not None:
        for name, content in files.items():
            _write(output / name, content)
        return [output / name for name in files]
    own = reading.settings.folder
    for name, content in files.items():
        write_file(own / EXPORTS / name, content, study_folder=own)
    return [own / EXPORTS / name for name in files]


def _render(reading: Reading, setup: Setup, winner: Config) -> Mapping[str, Rendered | Rewritten]:
    """Return what the winner makes of every server's files, in the way in which it ran."""
    target = setup.target
    if isinstance(target, ManagedTarget):
        return _rewrite(reading, setup, target, winner)
    rendered = {
        name: render_both(server, setup.space, winner, setup.facts[name])
        for name, server in setup.servers.items()
        if isinstance(server, PrivateServer)
    }
    offered = formats_of(rendered)
    missing = [name for name in rendered if name not in offered]
    return {**rendered, **_rewrite_beside(setup, missing, winner)}


def _rewrite_beside(setup: Setup, names: Sequence[str], winner: Config) -> Mapping[str, Rewritten]:
    """Return what the winner of private instances makes of the files that are installed beside them.

    A server that is not installed here, or cannot have these settings, is left out.
    """
    changes = {name: new for name, (_, new) in setup.space.changes(winner, derived=True).items()}
    rewritten = {}
    for name in names:
        server = setup.servers[name]
        if isinstance(server, InstalledServer):
            with suppress(TargetError, ConfigRejected):
                installation = server.find(setup.host)
                files = server.rewrite(setup.space.for_server(changes, name), installation)
                rewritten[name] = _compare(setup.host, installation, files)
    return rewritten


def _compare(host: Host, installation: Installation, files: Files) -> Rewritten:
    """Return installed files as they are and as a server's adapter rewrites them."""
    known = installation.files
    before = {path: known[path] for path in files if path in known}
    before |= _read(host, [path for path in files if path not in known])
    real = _real_paths(host, list(before))
    return Rewritten(
        before={real[path]: content for path, content in before.items()},
        after={real.get(path, path): content for path, content in files.items()},
        service=installation.service,
    )


def _rewrite(
    reading: Reading, setup: Setup, target: ManagedTarget, winner: Config
) -> Mapping[str, Rewritten]:
    """Return what the servers make of the files that are installed now, as `tuner apply` does."""
    chosen = {name: new for name, (_, new) in reading.space.changes(winner).items()}
    config = setup.space.complete(chosen)
    return {
        server.name: _compare(setup.host, server.installation, target.files_of(server, config))
        for server in target.servers
    }


def _real_paths(host: Host, paths: Sequence[PurePosixPath]) -> Mapping[PurePosixPath, PurePosixPath]:
    """Follow links, as Debian's sites-enabled has them: patch changes no file through one."""
    if not paths:
        return {}
    printed = host.run(("readlink", "-f", "--", *map(str, paths)), timeout_s=10.0).stdout
    real = [PurePosixPath(line) for line in printed.decode(errors="surrogateescape").split("\n")[:-1]]
    if len(real) != len(paths):
        names = ", ".join(map(str, paths))
        raise TargetError(
            f"{host.name}: {names}: it cannot be told where they really are. Export to json instead."
        )
    return dict(zip(paths, real, strict=True))


def _read(host: Host, paths: Sequence[PurePosixPath]) -> Files:
    contents = {path: host.read(path).content for path in paths}
    return {path: content for path, content in contents.items() if content is not None}


def _write(path: Path, content: bytes) -> None:
    """Write to a path that the user named, which may be a link."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise TargetError(
            f"{path}: cannot be written ({error.strerror}). Check the folder, its permissions and free space."
        ) from error
