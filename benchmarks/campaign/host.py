"""A drawn server on a simulated host: what the campaign measures there, and the time that it takes."""

import math
from dataclasses import dataclass, field

from benchmarks.campaign.noise import History
from benchmarks.campaign.servers import Server
from tests.unit.simulation import SimulatedHost
from tuner.ports import Config
from tuner.records import Window

SUGGEST_S = 0.05
WINDOW_S = 0.04
"""What every window costs beside its length: a generator is started, counters are read."""
NOT_READY_S = 5.0
QUIET_AFTER_S = 10.0
MANY = 50.0
"""Failures from which their number is as good as normal."""


@dataclass(kw_only=True)
class DrawnHost(SimulatedHost):
    """The host of one drawn server. Its history is a matter of time, its luck of how often it was asked."""

    server: Server
    suggest_s: float = SUGGEST_S
    busy_s: float = QUIET_AFTER_S
    history: History = field(init=False)
    epoch_s: float = field(init=False)
    ready_s: float = 0.0
    """When the server began to answer that runs now."""
    failing: float = 1.0
    """How much more of its requests fail than of others of its configuration."""

    def __post_init__(self) -> None:
        super().__post_init__()
        noise = self.server.noise
        self.worth, self.fault = self.server.truth, self.server.fault
        self.sigma_window, self.sigma_trial = noise.sigma_window, noise.sigma_start
        self.history = History(noise, f"history of server {self.server.number}")
        self.epoch_s = self.clock.time()

    def deploy(self, config: Config) -> float:
        family, fault = self.server.family, self.server.fault(config)
        is_dead = fault is not None and fault.kind == "not ready"
        seconds = family.stop_s + (NOT_READY_S if is_dead else family.deploy_s)
        self.clock.sleep(seconds)
        self.ready_s = self.clock.time()
        spread = self.server.noise.spread_of_failures
        self.failing = math.exp(self.rng.gauss(-0.5 * spread**2, spread))
        return seconds

    def window(self, config: Config, own: float, duration_s: float, rate_rps: float | None = None) -> Window:
        self.clock.sleep(WINDOW_S)
        return super().window(config, own, duration_s, rate_rps)

    def log_level(self, config: Config, begun_s: float, duration_s: float) -> float:
        after_s, age_s = begun_s - self.ready_s, self.server.noise.age_s
        young = (math.exp(-after_s / age_s) - math.exp(-(after_s + duration_s) / age_s)) * age_s / duration_s
        outside = self.history.level(begun_s - self.epoch_s, duration_s)
        return outside + young * self.server.age_depth(config)

    def failed(self, config: Config, asked: float) -> int:
        """Draw from a Poisson distribution around the rate of this trial."""
        mean = min(1.0, self.server.failing.rate(config) * self.failing) * asked
        if mean >= MANY:
            return round(max(0.0, min(asked, self.rng.gauss(mean, math.sqrt(mean)))))
        left, count = self.rng.random(), 0
        while mean and left > math.exp(-mean):
            left, count = left * self.rng.random(), count + 1
        return count

    def spoils(self, begun_s: float, duration_s: float) -> bool:
        return self.history.is_stolen(begun_s - self.epoch_s, duration_s)
