"""What an installed nginx is set to, and the same files with other values.

The tested server is the default one of the plain HTTP port. A directive that its block gives overrides the
one of `http`, so that is what is read and changed; what other servers and locations give is left alone.
"""

from collections import Counter
from collections.abc import Iterator

from tuner.adapters.servers.nginx.edit import (
    Edit,
    add_before,
    add_directive,
    apply_edits,
    change_arguments,
    remove_directive,
)
from tuner.adapters.servers.nginx.listen import (
    DEFAULTS,
    Listening,
    find_listening,
    read_options,
    write_options,
)
from tuner.adapters.servers.nginx.settings import EVENTS, HTTP, MAIN, SETTINGS, Setting
from tuner.adapters.servers.nginx.syntax import ENCODING, Directive
from tuner.adapters.servers.nginx.tree import read_tree
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Config, Facts, Files, Installation, Scalar

PARAMETERS = frozenset(DEFAULTS) | {name for setting in SETTINGS for name in setting.parameters}


class Layout:
    """An installed configuration, and where in it each setting stands."""

    def __init__(self, tree: Directive) -> None:
        self.main = tree
        self.events = _find_block(tree, EVENTS)
        self.http = _find_block(tree, HTTP)
        self.listening: Listening | None = find_listening(self.http)
        self._times_read = Counter((each.path, each.begin) for each in tree.walk())

    def find_given(self, setting: Setting) -> tuple[Directive, ...]:
        """Find the directives that are in force for the tested server; none when it is not given."""
        if setting.block != HTTP:
            block = self.main if setting.block == MAIN else self.events
            given = block.inside(setting.directive)
            # Pools of other names are other pools.
            pools = setting.directive == "thread_pool"
            return tuple(each for each in given if not pools or each.arguments[:1] == ("default",))
        overriding = self.listening.server.inside(setting.directive) if self.listening else ()
        return overriding or self.http.inside(setting.directive)

    def is_alone(self, directive: Directive) -> bool:
        """Tell whether it is read once: a file that is included twice has more than one meaning."""
        return self._times_read[directive.path, directive.begin] == 1

    def read(self, facts: Facts) -> dict[str, Scalar]:
        """Give what is in force, without what cannot be told or could not be changed."""
        found: dict[str, Scalar] = {}
        for setting in SETTINGS:
            given = self.find_given(setting)
            if not given:
                found |= setting.default(facts)
            elif len(given) == 1 and self.is_alone(given[0]):
                found |= setting.read(given[0].arguments)
        if self.listening and all(self.is_alone(carrier) for carrier in self.listening.carriers):
            found |= read_options(self.listening.carriers)
        return found


def rewrite_files(config: Config, installation: Installation) -> Files:
    """Give the files of a configuration that differ from what is installed."""
    current = installation.facts.current
    changed = {name: value for name, value in config.items() if not _is_same(value, current.get(name))}
    if not changed:
        return {}
    layout = Layout(read_tree(installation))
    for name in changed.keys() - current.keys():
        _check_missing(name, layout)
    values = {**current, **config}
    settings = _edit_settings(layout, changed, values, installation.files)
    return apply_edits([*settings, *_edit_listen(layout, changed, installation.files)], installation.files)


def _check_missing(name: str, layout: Layout) -> None:
    """Refuse a parameter without a value in force, unless its directive can be added."""
    if name not in PARAMETERS:
        unknown = f"nginx: {name[:80]!r} is no setting that is changed in an installed nginx."
        raise ConfigRejected(f"{unknown} Take it out of the space.")
    setting = next((setting for setting in SETTINGS if name in setting.parameters), None)
    if setting is None or layout.find_given(setting):
        unclear = (
            f"nginx: {name} is given here more than once, with a variable or in a form that is left alone."
        )
        raise ConfigRejected(f"{unclear} Take it out of the space.")


def _edit_settings(layout: Layout, changed: Config, values: Config, files: Files) -> Iterator[Edit]:
    for setting in SETTINGS:
        if changed.keys().isdisjoint(setting.parameters):
            continue
        given = layout.find_given(setting)
        own = {name: values[name] for name in setting.parameters if name in values}
        arguments = setting.write(given[0].arguments if given else None, own)
        if given:
            text = files[given[0].path].decode(ENCODING)
            if arguments is None:
                yield remove_directive(given[0], text)
            else:
                yield from change_arguments(given[0], arguments, text)
        elif arguments is not None:
            yield _add(layout, setting, arguments, files)


def _add(layout: Layout, setting: Setting, arguments: tuple[str, ...], files: Files) -> Edit:
    words = (setting.directive, *arguments)
    block = layout.http if setting.block == HTTP else layout.events
    text = files[block.path].decode(ENCODING)
    # `main` has no end of its own: what an include brings may come last.
    return add_before(block, words, text) if setting.block == MAIN else add_directive(block, words, text)


def _edit_listen(layout: Layout, changed: Config, files: Files) -> Iterator[Edit]:
    options = {name: value for name, value in changed.items() if name in DEFAULTS}
    if not options or layout.listening is None:
        return
    for carrier in layout.listening.carriers:
        arguments = write_options(carrier.arguments, options)
        yield from change_arguments(carrier, arguments, files[carrier.path].decode(ENCODING))


def _find_block(tree: Directive, name: str) -> Directive:
    blocks = tree.inside(name)
    if not blocks:
        raise TargetError(
            f"nginx: the configuration has no {name} block. Correct it until `nginx -t` accepts it."
        )
    return blocks[0]


def _is_same(value: Scalar, present: Scalar | None) -> bool:
    return type(value) is type(present) and value == present
