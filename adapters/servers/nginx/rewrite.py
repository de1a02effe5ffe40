"""The files of an installed nginx with other values."""

from collections.abc import Iterator

from tuner.adapters.servers.nginx.edit import (
    Edit,
    add_before,
    add_directive,
    apply_edits,
    change_arguments,
    remove_directive,
)
from tuner.adapters.servers.nginx.installation import layout_of
from tuner.adapters.servers.nginx.layout import PARAMETERS, Layout
from tuner.adapters.servers.nginx.listen import DEFAULTS, write_options
from tuner.adapters.servers.nginx.settings import HTTP, MAIN, SETTINGS, AccessLog, Setting
from tuner.adapters.servers.nginx.syntax import ENCODING, Directive
from tuner.errors import ConfigRejected
from tuner.kit.config_files import name_places
from tuner.ports import Config, Files, Installation, Scalar


def rewrite_files(config: Config, installation: Installation) -> Files:
    """Give the files of a configuration that differ from what is installed."""
    current = installation.facts.current
    changed = {name: value for name, value in config.items() if not _is_same(value, current.get(name))}
    if not changed:
        return {}
    layout = layout_of(installation)
    for name in changed.keys() - current.keys():
        _check_missing(name, layout, installation)
    values = {**current, **config}
    settings = _edit_settings(layout, changed, values, installation.files)
    return apply_edits([*settings, *_edit_listen(layout, changed, installation.files)], installation.files)


def find_overrides(config: Config, installation: Installation) -> dict[str, str]:
    """Return the settings that other sites or paths give otherwise, with the places where they do."""
    layout = layout_of(installation)
    found: dict[str, str] = {}
    for setting in SETTINGS:
        asked = {name: config[name] for name in setting.parameters if name in config}
        others = layout.find_others(setting) if asked else ()
        places = [
            layout.place(each) for each in others if not asked.items() <= setting.read(each.arguments).items()
        ]
        if places:
            found |= dict.fromkeys(asked, name_places(places))
    return found


def _check_missing(name: str, layout: Layout, installation: Installation) -> None:
    """Refuse a parameter without an active value, unless its directive can be added."""
    if name not in PARAMETERS:
        unknown = f"nginx: {name[:80]!r} is no setting that tuner changes in an installed nginx."
        raise ConfigRejected(f"{unknown} Remove this setting from the search space.")
    setting = next((setting for setting in SETTINGS if name in setting.parameters), None)
    if setting is None or layout.find_given(setting).directives:
        reason = installation.facts.withheld.get(name, "its line has a form that tuner does not change")
        raise ConfigRejected(
            f"nginx: tuner does not change {name} here: {reason}. Remove this setting from the search space."
        )


def _edit_settings(layout: Layout, changed: Config, values: Config, files: Files) -> Iterator[Edit]:
    for setting in SETTINGS:
        if changed.keys().isdisjoint(setting.parameters):
            continue
        given = layout.find_given(setting).directives
        own = {name: values[name] for name in setting.parameters if name in values}
        arguments = setting.write(_written(setting, given, layout), own)
        if given:
            text = files[given[0].path].decode(ENCODING)
            if arguments is None:
                yield remove_directive(given[0], text)
            else:
                yield from change_arguments(given[0], arguments, text)
        elif arguments is not None:
            yield _add(layout, setting, arguments, files)


def _written(setting: Setting, given: tuple[Directive, ...], layout: Layout) -> tuple[str, ...] | None:
    """Return the arguments that are there; of a log that is not written, where the program writes it."""
    arguments = given[0].arguments if given else None
    is_unnamed = isinstance(setting, AccessLog) and arguments in {None, ("off",)}
    return (str(layout.access_log),) if is_unnamed else arguments


def _add(layout: Layout, setting: Setting, arguments: tuple[str, ...], files: Files) -> Edit:
    words = (setting.directive, *arguments)
    block = layout.http if setting.block == HTTP else layout.events
    text = files[block.path].decode(ENCODING)
    # `main` has no end of its own: what an include brings may come last.
    return add_before(block, words, text) if setting.block == MAIN else add_directive(block, words, text)


def _edit_listen(layout: Layout, changed: Config, files: Files) -> Iterator[Edit]:
    options = {name: value for name, value in changed.items() if name in DEFAULTS}
    for carrier in layout.carriers if options else ():
        arguments = write_options(carrier.arguments, options)
        yield from change_arguments(carrier, arguments, files[carrier.path].decode(ENCODING))


def _is_same(value: Scalar, present: Scalar | None) -> bool:
    return type(value) is type(present) and value == present
