"""Read what nginx takes from the file of a private instance, as it prints it (`nginx -T`)."""

from collections.abc import Iterator

from tuner.adapters.servers.nginx.config import CONFIG_FILE, is_spoken
from tuner.adapters.servers.nginx.proxy import PARAMETERS, read_passing
from tuner.adapters.servers.nginx.settings import SETTINGS, SSL, V2
from tuner.adapters.servers.nginx.syntax import ENCODING, Directive, read_directives
from tuner.errors import TargetError
from tuner.kit import programs
from tuner.ports import Config, Facts, Host, Scalar, Site

MISSING = "not given"
"""Read back in place of a setting that should be there."""


def read_printed(host: Host, config: Config, facts: Facts, site: Site) -> dict[str, Scalar]:
    """Read settings of TLS, HTTP/2 and a backend, which a running nginx does not show."""
    spoken = _of_what_is_spoken(site)
    asked = [name for name in config if name in PARAMETERS or name in spoken]
    if not asked:
        return {}
    directives = tuple(_print(host, facts, site))
    found = {**read_passing(directives), **_read_spoken(directives, site)}
    return {name: value for name in asked if (value := found.get(name, MISSING)) is not None}


def _of_what_is_spoken(site: Site) -> frozenset[str]:
    own = (setting for setting in SETTINGS if setting.module in {SSL, V2} and is_spoken(setting, site))
    return frozenset(name for setting in own for name in setting.parameters)


def _print(host: Host, facts: Facts, site: Site) -> Iterator[Directive]:
    """Yield every directive at any depth; none when what was printed is no configuration."""
    file = site.directory / CONFIG_FILE
    dumped = host.run((str(facts.program), "-T", "-c", str(file)), timeout_s=programs.COMMAND_TIMEOUT_S)
    try:
        directives = read_directives(dumped.stdout.decode(ENCODING), file)
    except TargetError:
        return
    for each in directives:
        yield from (each, *each.walk())


def _read_spoken(directives: tuple[Directive, ...], site: Site) -> dict[str, Scalar]:
    spoken = {each.directive: each for each in SETTINGS if _of_what_is_spoken(site) & set(each.parameters)}
    given = (each for each in directives if each.name in spoken)
    return {name: value for each in given for name, value in spoken[each.name].read(each.arguments).items()}
