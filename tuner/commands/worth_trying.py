"""Finds settings worth trying: hints, or studies of alike hosts, promise a gain from them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.advice.findings import Evidence, Finding, Level, Proposal, find_place
from tuner.corpus.corpus_study import CorpusStudy
from tuner.hosts.machine import Machine
from tuner.ports import Installation, Scalar
from tuner.records import Fingerprint, Metric
from tuner.space import Parameter, Space, SpaceFacts, load_space
from tuner.space.parameters import CURRENT
from tuner.space.values import find_special

MOST_TRIED = 5
"""Settings of each server; more would hide the limits."""
LEAST_ODDS = 2
"""Of a hint; a corpus proposes nothing below either."""
UNITS = frozenset({"bytes", "KiB", "MiB", "ns", "µs", "ms", "cs", "s", "%"})
"""Units that belong behind a number; the name of a setting says what else is counted."""
CONNECTIONS = 100
"""What a new study loads with, for values that depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunable:
    """One server as it is installed, or the kernel."""

    title: str
    """As findings name it."""
    adapter: str
    space: str
    installation: Installation


def find_worth_trying(
    tunable: Tunable, machine: Machine, studies: Sequence[CorpusStudy] = ()
) -> tuple[Finding, ...]:
    """Return what studies of alike hosts found first, then what hints say, the surest first.

    Raises UsageError for a search space that cannot be read.
    """
    facts = tunable.installation.facts
    space = load_space(
        [tunable.space],
        facts=SpaceFacts(
            names={
                "cores": machine.cores, "online_cores": machine.online_cores,
                "memory_mib": machine.memory_mib, "connections": CONNECTIONS,
                "open_files_max": machine.open_files_max, "somaxconn": machine.somaxconn,
            },
            versions={tunable.adapter: facts.version} if facts.version else {},
            current=facts.current, withheld=facts.withheld, sandbox=False, loopback=False, installed=True,
        ),
        base=Path(),
    )  # fmt: skip
    found: dict[str, Finding] = {}
    for each in (*_ask_studies(tunable, machine, space, studies), *_ask_hints(tunable, space)):
        found.setdefault(each.limit, each)
    return tuple(found.values())[:MOST_TRIED]


def _ask_studies(
    tunable: Tunable, machine: Machine, space: Space, studies: Sequence[CorpusStudy]
) -> Iterator[Finding]:
    if not studies:
        return
    # They need numerical libraries, which take long to import.
    from tuner.corpus.collect import describe_surroundings
    from tuner.corpus.proposals import find_alike, propose
    from tuner.report.corpus import describe_gain, describe_studies
    from tuner.report.wording import capitalize

    version = ".".join(map(str, tunable.installation.facts.version))
    here = Fingerprint(
        host=machine.name, kernel=machine.kernel, cpu=machine.cpu, cores=machine.cores,
        memory_mib=machine.memory_mib, servers={tunable.adapter: version}, generator="", co_located=False,
        server_cpus=(), generator_cpus=(),
    )  # fmt: skip
    known = {each.name: each for each in space.parameters}
    alike = find_alike(studies, describe_surroundings(here, {}), Metric.GOODPUT, space)
    for each in propose(alike, space):
        gain = describe_gain(each.gain.mean, *each.gain.interval)
        likeness = f"likeness {each.known[-1].likeness:.2f} to {each.known[0].likeness:.2f}"
        yield _describe(
            tunable, space, known[each.parameter], each.value, rule=f"corpus.{each.parameter}",
            evidence=capitalize(f"{describe_studies(each.known)} ({likeness}): {gain} requests/s, 95 % CI"),
            source=f"corpus: {', '.join(one.study.id for one in each.known)}",
        )  # fmt: skip


def _ask_hints(tunable: Tunable, space: Space) -> Iterator[Finding]:
    default = space.default()
    scope = space.rules.scope(default)
    hinted = [
        (each, each.hint)
        for each in space.parameters
        if each.hint is not None and not each.pinned and each.name in default and each.acts(scope)
    ]
    for parameter, hint in sorted(hinted, key=lambda pair: -pair[1].odds):
        if hint.value is not None and hint.value != default[parameter.name] and hint.odds >= LEAST_ODDS:
            yield _describe(
                tunable, space, parameter, hint.value, rule=f"hint.{parameter.name}",
                evidence=f"The hint of its search space: {hint.odds:g} to 1 that it helps",
                source=hint.source,
            )  # fmt: skip


def _describe(
    tunable: Tunable,
    space: Space,
    parameter: Parameter,
    value: Scalar,
    *,
    rule: str,
    evidence: str,
    source: str,
) -> Finding:
    name, installation = parameter.name, tunable.installation
    kernel = installation.facts.current if installation.service is None else ()
    proposal = Proposal(
        name=name, current=_label(parameter, space.default().get(name)), value=_label(parameter, value),
        place=find_place(name, installation.files, kernel), why=parameter.why,
        unit=parameter.unit if parameter.unit in UNITS else "",
    )  # fmt: skip
    return Finding(
        server=tunable.title, rule=rule, level=Level.TRY, limit=name, harm="slows",
        evidence=(Evidence(text=evidence),), proposals=(proposal,), cost=parameter.also, source=source,
    )  # fmt: skip


def _label(parameter: Parameter, value: Scalar | None) -> Scalar | None:
    """Return a special value by its label, as a study file has it."""
    special = {label: stored for label, stored in parameter.special.items() if label != CURRENT}
    return value if value is None else find_special(special, value) or value
