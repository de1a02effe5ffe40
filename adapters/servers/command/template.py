"""Render a template of the study's author with the values of a configuration.

Jinja2 (https://jinja.palletsprojects.com/en/stable/sandbox/): a template reaches no Python beyond its values,
and a name that nothing stands for is an error. Values are put in as they are and are no template themselves.
"""

import traceback
from typing import TYPE_CHECKING

from tuner.errors import ConfigRejected, UsageError
from tuner.ports import Config, Scalar, Site

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

LARGEST = 2**20
"""Characters of a file that a template becomes."""
LONGEST_VALUE = 1000


class Template:
    """One template, compiled once."""

    def __init__(self, name: str, text: str) -> None:
        """Compile it. Raises UsageError naming template and line when it is no template."""
        from jinja2 import TemplateSyntaxError

        self._name = name
        environment = _make_environment()
        try:
            code = environment.compile(text, name, name)
        except TemplateSyntaxError as error:
            raise UsageError(
                f"servers: command: template of {name}, line {error.lineno}: {error.message}. Correct the "
                "template."
            ) from error
        self._template = environment.template_class.from_code(environment, code, environment.globals)

    def render(self, config: Config, site: Site) -> str:
        """Return the file.

        Raises ConfigRejected naming template, line and variable when it cannot be rendered, or a value that
        is no one line.
        """
        for name, value in config.items():
            refuse_lines(name, value)
        try:
            text = self._template.render(
                settings=dict(config),
                port=site.port,
                directory=str(site.directory),
                document_root=str(site.document_root),
                backend=None if site.backend is None else site.backend.address,
                cpus=sorted(site.cpus),
            )
        except Exception as error:  # a template may raise whatever its expressions do
            raise ConfigRejected(self._explain(error, config)) from error
        if len(text) > LARGEST:
            raise ConfigRejected(
                f"command: {self._name} becomes {len(text)} characters, more than {LARGEST}."
            )
        return text

    def _explain(self, error: Exception, config: Config) -> str:
        lines = [
            each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == self._name
        ]
        where = f"command: template of {self._name}, line {lines[-1]}" if lines else f"command: {self._name}"
        what = str(error) or type(error).__name__
        return f"{where}: {what}. Correct the template; its settings are {', '.join(config) or 'none'}."


def _make_environment() -> "SandboxedEnvironment":
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def refuse_lines(name: str, value: Scalar) -> None:
    """Raise ConfigRejected for a text that could be more than one value of its line."""
    if isinstance(value, str) and (not value.isprintable() or len(value) > LONGEST_VALUE):
        raise ConfigRejected(f"command: {name} = {value[:80]!r} is not one value. Correct the search space.")
