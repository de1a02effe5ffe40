"""Commands that measure on a simulated host, whatever study they are given."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.simulation import TUNED, SimulatedHost, SimulatedRunner, make_setup, space_of
from tuner.campaign import interleaved
from tuner.campaign.prepare import Setup
from tuner.commands.contests import compare
from tuner.study import Study


def hold(setup: Setup) -> Setup:
    """Return a setup whose target is held and given back without anything being done."""
    target: Any = SimpleNamespace(hold=lambda _: nullcontext())
    return replace(setup, target=target)


def simulate(monkeypatch: pytest.MonkeyPatch, host: SimulatedHost) -> list[SimulatedRunner]:
    """Let a command measure on a simulated host; returns the runners that it uses.

    Args:
        monkeypatch: of the test.
        host: on which all studies are.
    """
    runners: list[SimulatedRunner] = []

    def make_runner(**given: Any) -> SimulatedRunner:
        runners.append(SimulatedRunner(host=host, **given))
        return runners[-1]

    def prepare(study: Study) -> Setup:
        return hold(make_setup(study, space_of(*TUNED), cpus=host.cpus))

    monkeypatch.setattr(compare, "prepare", prepare)
    monkeypatch.setattr(interleaved, "TrialRunner", make_runner)
    monkeypatch.setattr(interleaved, "time", host.clock)
    return runners
