"""Commands that measure on a simulated host, whatever study they are given."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.simulation import TUNED, SimulatedHost, SimulatedStarter, make_setup, space_of
from tuner.campaign import interleaved
from tuner.campaign.prepare import Setup
from tuner.commands.contests import compare
from tuner.study import Study


def hold(setup: Setup) -> Setup:
    """Return a setup whose target is held and given back without anything being done."""
    target: Any = SimpleNamespace(hold=lambda _: nullcontext())
    return replace(setup, target=target)


def simulate(monkeypatch: pytest.MonkeyPatch, host: SimulatedHost) -> list[SimulatedStarter]:
    """Let a command measure on a simulated host; returns the starters that it uses.

    Args:
        monkeypatch: of the test.
        host: on which all studies are.
    """
    starters: list[SimulatedStarter] = []

    def make_starter(**given: Any) -> SimulatedStarter:
        starters.append(SimulatedStarter(host=host, **given))
        return starters[-1]

    def prepare(study: Study) -> Setup:
        return hold(make_setup(study, space_of(*TUNED), cpus=host.cpus))

    monkeypatch.setattr(compare, "prepare", prepare)
    monkeypatch.setattr(interleaved, "Starter", make_starter)
    monkeypatch.setattr(interleaved, "time", host.clock)
    return starters
