"""What the shipped test support tells the author of an adapter."""

import pytest

from tuner.ports import Completed, Config, Facts, Host, Needs
from tuner.testing import servers
from tuner.testing.__main__ import main


class Half:
    """An adapter whose author forgot how its files are rewritten."""

    name = "half"
    package = "half"
    denied = ()

    def detect(self, host: Host) -> Facts: ...
    def needs(self, config: Config) -> Needs: ...
    def refusals(self, checked: Completed) -> tuple[str, ...]: ...
    def complaints(self, log: bytes) -> tuple[str, ...]: ...
    def find(self, host: Host) -> None: ...
    def in_force(self, *_: object) -> Config: ...


def test_methods_that_an_adapter_lacks_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(servers, "make_server", lambda _name: Half())

    suite = servers.contract_of("half")

    with pytest.raises(AssertionError, match=r"'InstalledServer': \['rewrite'\]"):
        suite().test_it_is_tuned_in_one_mode_at_least()


def test_an_unknown_server_is_answered_with_the_known_ones():
    with pytest.raises(SystemExit, match=r"there is no 'ngnix'\. Did you mean nginx\? Use one of: "):
        main(["ngnix"])


def test_without_a_name_the_usage_is_shown():
    with pytest.raises(SystemExit, match=r"python -m tuner\.testing NAME"):
        main([])
