"""Finds what a winner makes of every server's files: the installed ones, or where there are none, its own."""

import os.path
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from tuner.campaign.prepare import Setup
from tuner.commands.session import Reading
from tuner.deploy.managed import ManagedTarget
from tuner.deploy.sandbox import SandboxTarget
from tuner.deploy.systemd_limits import ask_limits, raise_limits, read_limits
from tuner.errors import ConfigRejected, TargetError
from tuner.export import Rendered, Rewritten, render_both
from tuner.export.lowered import find_lowered, keep_limits
from tuner.ports import (
    Config,
    Files,
    Host,
    Installation,
    InstalledServer,
    LayeredServer,
    PrivateServer,
    Scalar,
    Upstream,
)
from tuner.restore.keeper.requests import is_setting
from tuner.shell_words import write_command
from tuner.space import Space

Differences = Mapping[str, Rendered | Rewritten]
"""By server."""


def find_differences(reading: Reading, setup: Setup, winner: Config) -> Differences:
    """Return what the winner makes of every server's files, in the way in which it ran."""
    if isinstance(setup.target, ManagedTarget):
        return _rewrite_managed(reading, setup, setup.target, winner)
    return {
        name: _change_private(setup, server, winner)
        for name, server in setup.servers.items()
        if isinstance(server, PrivateServer)
    }


def _rewrite_managed(reading: Reading, setup: Setup, target: ManagedTarget, winner: Config) -> Differences:
    """Return what the servers make of the files that are installed now, as `tuner apply` does."""
    chosen = reading.space.chosen(winner)
    config = setup.space.complete(chosen)
    return {
        server.name: _rewrite(
            setup.host,
            server.installation,
            partial(target.files_of, server),
            setup.space.for_server(config, server.name),
        )
        for server in target.servers
    }


def _change_private(setup: Setup, server: PrivateServer, winner: Config) -> Rendered | Rewritten:
    """Return what the winner of a private instance makes of the files that are installed beside it.

    Where these cannot be changed, and for a server that takes a drop-in, the instance's own are compared.
    What is at the default of the study is not written, whatever stands there.
    """
    facts, reason, installed, rewritten = setup.facts[server.name], "", {}, None
    if isinstance(server, InstalledServer):
        try:
            installation = server.find(setup.host)
            installed = dict(installation.facts.current)
            rewritten = _rewrite_private(setup, server, installation, winner)
            if facts.drop_in is None:
                return rewritten
        except (TargetError, ConfigRejected) as error:
            reason = str(error)
    rendered = render_both(
        server, setup.space, winner, facts, reason=reason, installed=installed,
        backend=_find_backend(setup, server.name),
    )  # fmt: skip
    return replace(rendered, installed=rewritten)


def _find_backend(setup: Setup, server: str) -> Upstream | None:
    """Return whom a private instance passes requests to, on the port that it has in every sandbox."""
    if not isinstance(setup.target, SandboxTarget):
        return None
    chain, facts = setup.target.chain, setup.target.facts
    name = chain.backends.get(server)
    return None if name is None else Upstream(protocol=facts[name].speaks, port=chain.ports[name])


def _rewrite_private(
    setup: Setup, server: InstalledServer, installation: Installation, winner: Config
) -> Rewritten:
    """Return what the winner makes of the installed files. Raises TargetError or ConfigRejected."""
    space, installed = setup.space, installation.facts.current
    changes = {name: new for name, (_, new) in space.shipped(winner).items()}
    chosen = keep_limits(space, space.for_server(changes, server.name), installed)
    limits = _raise_limits(setup, server, installation, winner)
    rewritten = _rewrite(
        setup.host,
        installation,
        lambda config: {**files, **limits} if (files := server.rewrite(config, installation)) else {},
        chosen,
        directory=_common_directory(installation.files),
    )
    written = {name: value for name, value in chosen.items() if name not in rewritten.by_hand}
    doubts = tuple(_find_doubts(server, space, installation, written))
    return replace(rewritten, lowered=find_lowered(space, written, installed), doubts=doubts)


def _find_doubts(
    server: InstalledServer, space: Space, installation: Installation, written: Config
) -> Iterator[str]:
    """Yield why the gain of a private instance may be another on an installed server."""
    sites, current, default = installation.sites, installation.facts.current, space.default()
    if sites:
        others = f" and {len(sites) - 1} more" if len(sites) > 1 else ""
        yield (
            f"{server.name}: {sites[0]}{others} was never measured; the study measured only a private "
            "instance. To measure the installed server, run: "
            f"{write_command('tuner', 'init', server.name, '--managed')}"
        )
    unlike = [
        f"{each.name} {space.show(each.name, current[each.name])} instead of "
        f"{space.show(each.name, default[each.name])}"
        for each in space.parameters
        if each.name in written
        and each.name in default
        and current.get(each.name, default[each.name]) not in {default[each.name], written[each.name]}
    ]
    if unlike:
        yield f"{server.name}: the installed configuration is not the measured default: {', '.join(unlike)}"
    if isinstance(server, LayeredServer):
        for name, places in server.find_overrides(written, installation).items():
            yield f"{name}: {places} set this as well; requests that these parts answer do not get the change"


def describe_moved(reading: Reading, setup: Setup) -> Iterator[str]:
    """Yield in what a host is not the one that was measured: another machine, or other values by now."""
    measured, found, winner = reading.summary.fingerprint.host, setup.fingerprint.host, reading.summary.winner
    if reading.settings.targets is None and measured != found:
        yield f"the study measured {measured}, and never {found}. The gain on {found} may differ"
    if not isinstance(setup.target, ManagedTarget) or winner is None:
        return
    show, now = reading.space.show, setup.space.default()
    moved = [
        f"{name} {show(name, value)} → {show(name, now[name])}"
        for name, value in reading.space.default().items()
        if now.get(name, value) not in {value, winner.config.get(name)}
    ]
    if moved:
        yield f"{setup.host.name}: changed since the study began: {', '.join(moved)}"


def _raise_limits(setup: Setup, server: InstalledServer, installation: Installation, winner: Config) -> Files:
    """Return the drop-in of the installed unit, where the winner needs more than the unit is allowed."""
    service = installation.service
    if service is None or not service.is_systemd:
        return {}
    limits = read_limits(setup.host.run_all([ask_limits(service)])[0])
    return raise_limits(service, limits, server.needs(setup.space.for_server(winner, server.name)))


def _common_directory(paths: Files) -> PurePosixPath:
    """Return the deepest directory that holds all of these files."""
    return PurePosixPath(os.path.commonpath([path.parent for path in paths]) if paths else "/")


def _rewrite(
    host: Host,
    installation: Installation,
    rewrite: Callable[[Config], Files],
    config: Config,
    *,
    directory: PurePosixPath = PurePosixPath("/"),
) -> Rewritten:
    """Return installed files as they are and as a server's adapter rewrites them.

    Raises:
        ConfigRejected: nothing of the configuration can be put into these files.
    """
    files, refused = rewrite_accepted(rewrite, config)
    if refused and not files:
        raise ConfigRejected("; ".join(dict.fromkeys(refused.values())))
    known = installation.files
    before = {path: known[path] for path in files if path in known}
    before |= _read(host, [path for path in files if path not in known])
    real = _real_paths(host, list(before))
    modes = {path: mode for path in real.values() if (mode := _read_mode(host, path)) is not None}
    after = {real.get(path, path): content for path, content in files.items()}
    is_below = all(path.is_relative_to(directory) for path in after)
    return Rewritten(
        before={real[path]: content for path, content in before.items()},
        after=after,
        service=installation.service,
        directory=directory if is_below else PurePosixPath("/"),
        by_hand=refused,
        modes=modes,
    )


def rewrite_accepted(rewrite: Callable[[Config], Files], config: Config) -> tuple[Files, dict[str, str]]:
    """Return the files with all settings that an adapter accepts, and why it refuses each of the others.

    A setting may need another one to be accepted, whatever their order: what is refused is tried again as
    long as more is accepted. Settings that need each other are refused together.
    """
    try:
        return rewrite(config), {}
    except ConfigRejected:
        accepted: dict[str, Scalar] = {}
        refused: dict[str, str] = dict.fromkeys(config, "")
    last = 0
    while len(refused) != last:
        last = len(refused)
        for name in tuple(refused):
            try:
                rewrite({**accepted, name: config[name]})
            except ConfigRejected as error:
                # What to do about it is said to authors of spaces, who read no export.
                refused[name] = str(error).partition(". ")[0]
            else:
                accepted[name] = config[name]
                del refused[name]
    return rewrite(accepted), refused


def _real_paths(host: Host, paths: Sequence[PurePosixPath]) -> Mapping[PurePosixPath, PurePosixPath]:
    """Follow links, as Debian's sites-enabled has them: patch changes no file through one.

    The kernel's settings stay under the names by which they are known: those of cards are links.
    """
    settings = [path for path in paths if is_setting(path)]
    paths = [path for path in paths if path not in settings]
    known = {path: path for path in settings}
    if not paths:
        return known
    printed = host.run(("readlink", "-f", "--", *map(str, paths)), timeout_s=10.0).stdout
    real = [PurePosixPath(line) for line in printed.decode(errors="surrogateescape").split("\n")[:-1]]
    if len(real) != len(paths):
        names = ", ".join(map(str, paths))
        raise TargetError(
            f"{host.name}: tuner cannot find the real paths of {names}. Export to json instead."
        )
    return known | dict(zip(paths, real, strict=True))


def _read_mode(host: Host, path: PurePosixPath) -> int | None:
    """Return the mode of a file; None for a setting of the kernel, which no export makes."""
    return None if is_setting(path) else host.read(path).mode


def _read(host: Host, paths: Sequence[PurePosixPath]) -> Files:
    contents = {path: host.read(path).content for path in paths}
    return {path: content for path, content in contents.items() if content is not None}
