"""How much better the optimizer is than its peers: true regret of what it recommends, by trials and by load.

    python -m benchmarks.optimizer [--seeds N] [--trials N] [--peers a,b] [--surfaces a,b] [--games FILE]
        [--table FILE]

Every optimizer plays every surface with the same seeds. The regret is how far the truth of the recommended
configuration lies below the best that is known, in log points. Peers that are not installed are left out with
a word. Games are kept in a file as they end and not played twice, so that slow peers can be played later, or
with fewer seeds and trials. Exit status 1 when a bound is missed.
"""

import argparse
import json
import logging
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.figures import Figure
from benchmarks.surfaces import Surface, crashes, made_surfaces, recorded_surfaces

OURS = "noisy-gp"
NEEDS = {"gp": "torch", "smac": "smac"}
TRIALS = 60
LOOKS = (10, 20, 40, 60)
NEAR = 0.05
"""Regret (log points) at which a search has arrived."""
NEARER = (0.2, 0.15, 0.1, NEAR)
"""Regrets of which it is told how much load they take."""
TIMED = (20, 60, 200, 500)


@dataclass(frozen=True, slots=True)
class Game:
    """One optimizer on one surface with one seed."""

    surface: str
    peer: str
    seed: int
    regrets: tuple[float, ...]
    """After every trial."""
    load_s: tuple[float, ...]
    """Spent until then."""
    suggest_s: tuple[float, ...]
    """Processor time of every suggestion: others may be at work on the machine."""
    crashed_later: float
    """Share of the last third of the trials that failed."""


SURFACES: dict[str, Surface] = {}


def surfaces() -> dict[str, Surface]:
    """Give all surfaces by name."""
    if not SURFACES:
        SURFACES.update({each.name: each for each in (*recorded_surfaces(), *made_surfaces())})
    return SURFACES


def play(surface_name: str, peer_name: str, seed: int, trials: int) -> Game:
    """Let an optimizer search a surface."""
    import optuna

    from benchmarks.peers import PEERS

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.disable(logging.WARNING)
    surface = surfaces()[surface_name]
    rng = np.random.default_rng((seed, 1))
    peer = PEERS[peer_name](surface, seed, trials)
    regrets, spent, took, failed = [], [], [], []
    load_s, best = 0.0, -np.inf
    for _ in range(trials):
        moment = time.process_time()
        params = dict(peer.ask())
        took.append(time.process_time() - moment)
        outcome = surface.start(params, rng, best)
        peer.tell(outcome)
        best = max(best, -np.inf if outcome.value is None else outcome.value)
        load_s += outcome.load_s
        recommended = peer.recommend()
        worst = 10.0
        regrets.append(worst if recommended is None else surface.best - surface.truth(recommended))
        spent.append(load_s)
        failed.append(crashes(params) if surface_name.endswith("crashing") else False)
    return Game(
        surface_name, peer_name, seed, tuple(regrets), tuple(spent), tuple(took),
        crashed_later=float(np.mean(failed[-trials // 3 :])),
    )  # fmt: skip


class Kept:
    """Games that were played, in a file where there is one."""

    def __init__(self, path: Path | None) -> None:
        """Read the games of a file, a JSON object per line."""
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
        self._games = [Game(**json.loads(line)) for line in lines]

    def has(self, surface: str, peer: str, seed: int) -> bool:
        """Say whether a game was played."""
        return any((game.surface, game.peer, game.seed) == (surface, peer, seed) for game in self._games)

    def of(self, surface: str, peer: str) -> list[Game]:
        """Give all games of an optimizer on a surface."""
        return [game for game in self._games if (game.surface, game.peer) == (surface, peer)]

    def add(self, game: Game) -> None:
        """Keep one more."""
        self._games.append(game)
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(game)) + "\n")


def arrival_s(games: Sequence[Game], near: float = NEAR) -> float:
    """Give the load-seconds after which the median stays within `near`; infinity where it never does."""
    grid = np.linspace(0, max(game.load_s[-1] for game in games), 241)
    at = np.median(
        [np.array([10.0, *game.regrets])[np.searchsorted(game.load_s, grid, side="right")] for game in games],
        axis=0,
    )
    beyond = np.flatnonzero(at > near)
    last = beyond[-1] + 1 if len(beyond) else 0
    return float(grid[last]) if last < len(grid) else np.inf


def main() -> int:
    """Play all games, print the table and the bounds."""
    options = _options()
    names = [name for name in options.surfaces.split(",") if name] or list(surfaces())
    peers = [name for name in options.peers.split(",") if find_spec(NEEDS.get(name, "numpy"))]
    for name in set(options.peers.split(",")) - set(peers):
        print(f"{name} is left out: {NEEDS[name]} is not installed", flush=True)
    kept = Kept(Path(options.games) if options.games else None)
    for name in names:
        _ = surfaces()[name].best  # fits and searches the forest before the workers are forked
    lines = [_title()]
    figures: list[Figure] = []
    with ProcessPoolExecutor(options.workers) as workers:
        for name in names:
            games: dict[str, list[Game]] = {}
            for peer in peers:
                missing = [seed for seed in range(options.seeds) if not kept.has(name, peer, seed)]
                for job in [workers.submit(play, name, peer, seed, options.trials) for seed in missing]:
                    kept.add(job.result())
                games[peer] = kept.of(name, peer)
                lines.append(_row(games[peer]))
                print(lines[-1], flush=True)
            figures += judge(name, games)
    if options.timing:
        figures += list(time_suggestions())
    print("\n".join(map(str, figures)))
    if options.table:
        Path(options.table).write_text(_page(lines, figures), encoding="utf-8")
    return 0 if all(figure.is_met for figure in figures) else 1


def judge(name: str, games: Mapping[str, Sequence[Game]]) -> list[Figure]:
    """Hold ours against the best of the others."""
    others = [each for each in games if each != OURS]
    if OURS not in games or not others:
        return []
    figures = []
    for look in LOOKS[1:]:
        ours = _median(games[OURS], look)
        best = min(_median(games[each], look) for each in others)
        if not np.isfinite(best):
            continue
        figures.append(
            Figure(name=f"{name}: regret after {look} trials, of the best peer's", seen=ours / best, most=0.6)
        )
    for near in NEARER:
        ours, quickest = (min(arrival_s(games[each], near) for each in some) for some in ([OURS], others))
        if not np.isfinite(quickest):
            # Nobody else arrived: whoever had the least load may have been about to.
            quickest = min(max(game.load_s[-1] for game in games[each]) for each in others)
        figures.append(
            Figure(
                name=f"{name}: load to a regret of {near:g}, of the best peer's",
                seen=ours / quickest, most=0.5,
            )
        )  # fmt: skip
    if name.endswith("crashing"):
        later = 100 * float(np.mean([game.crashed_later for game in games[OURS]]))
        figures.append(Figure(name=f"{name}: later trials that crash", seen=later, unit="%", most=5))
    return figures


def time_suggestions() -> Sequence[Figure]:
    """Time our suggestions after many trials, in a process of its own, whose memory is measured as well."""
    command = [sys.executable, "-m", "benchmarks.optimizer_timing", *map(str, TIMED)]
    seen = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    bounds = {60: 50.0, 500: 500.0}
    return [
        *(
            Figure(
                name=f"milliseconds for a suggestion after {count} trials, median",
                seen=seen["ms"][str(count)], most=bounds.get(count, np.inf),
            )
            for count in TIMED
        ),
        Figure(name="MiB above the imports", seen=seen["mib"], most=150),
    ]  # fmt: skip


def _median(games: Sequence[Game], look: int) -> float:
    """Give the median regret after so many trials; infinity where the games were shorter."""
    return float(np.median(_regrets(games, look) or [np.inf]))


def _regrets(games: Sequence[Game], look: int) -> list[float]:
    return [game.regrets[look - 1] for game in games if len(game.regrets) >= look]


def _title() -> str:
    looks = [f"{look} trials" for look in LOOKS]
    loads = [f"s of load to {near:g}" for near in NEARER]
    heads = ["surface", "optimizer", "seeds", *looks, *loads, "ms"]
    return f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"


def _row(games: Sequence[Game]) -> str:
    cells = []
    for look in LOOKS:
        regrets = _regrets(games, look)
        low, middle, high = np.quantile(regrets or [np.nan], (0.25, 0.5, 0.75))
        cells.append(f"{middle:.3f} ({low:.3f}–{high:.3f})" if regrets else "–")
    arrivals = [arrival_s(games, near) for near in NEARER]
    cells += [f"{arrival:.0f}" if np.isfinite(arrival) else "–" for arrival in arrivals]
    cells.append(f"{1000 * np.median([game.suggest_s[-10:] for game in games]):.0f}")
    return f"| {games[0].surface} | {games[0].peer} | {len(games)} | {' | '.join(cells)} |"


def _page(lines: Sequence[str], figures: Sequence[Figure]) -> str:
    """Give the table as it is kept, with what it was made with."""
    named = ("servertuner", "optuna", "numpy", "scipy", "scikit-learn", "smac", "torch")
    versions = ", ".join(f"{name} {found}" for name in named if (found := _version(name)))
    bounds = "\n".join(f"    {figure}" for figure in figures)
    return f"""# Optimizers compared

Measured on {time.strftime("%Y-%m-%d")}, with Python {platform.python_version()}, {versions}.
Each cell has the true regret of the configuration that an optimizer recommends: the median, and the quartiles
in brackets. Regret is the distance from the best known configuration, in log points. "s of load to 0.2" means
seconds of load until the median regret is 0.2. The last column is the CPU milliseconds of a suggestion,
over the last ten suggestions. `make bench-optimizer` writes this page; [How good the optimizer
is](optimizer.md) explains the results.

{chr(10).join(lines)}

{bounds}
"""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _options() -> argparse.Namespace:
    from benchmarks.peers import PEERS

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--surfaces", default="")
    parser.add_argument("--games", default="")
    parser.add_argument("--table", default="")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--timing", action=argparse.BooleanOptionalAction, default=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
