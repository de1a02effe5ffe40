"""Whatever is read of a host: a proposal lifts its limit, or the finding says that none does."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random

import pytest

from tests.unit.advice.test_messages import FORMS, MESSAGES, PROCESSES
from tuner.advice.findings import Advice, Finding, SeenServer, judge
from tuner.advice.log_lines import LogLine, cut_messages
from tuner.advice.rules import Rules, read_rules, rule_files
from tuner.ports import Scalar
from tuner.report.advice import advice_page, advice_text

RULES = {path.stem: read_rules(path) for path in rule_files()}
COUNTS = (0, 1, 2, 3, 8, 20, 100, 511, 1024, 4096, 65535, 200_000)
SHARES = (0, 0.01, 0.5, 0.97, 1, 2.5, 90.5, 4096)
MEASURED = re.compile(r"cpu_\w+|\w+_(?:s|share|pressure|mib)")
"""Names of facts that are no whole numbers."""
LARGEST = 2**31 - 1
"""Of a setting of the kernel or of a server, mostly of type int."""
LOOKS = 500


def make_scopes(rules: Rules, seed: int) -> Iterator[dict[str, Scalar]]:
    """Yield what might be read: each name has a number, or a word that some condition asks for."""
    drawn = Random(seed)  # noqa: S311 - no secret
    texts = " ".join(rules.expressions)
    names = sorted({name for each in rules.expressions.values() for name in each.names})
    words = {name: re.findall(rf"\b{name} [!=]= '([^']+)'", texts) for name in names}
    numbers = {name: SHARES if MEASURED.fullmatch(name) else COUNTS for name in names}
    for _ in range(LOOKS):
        yield {
            name: drawn.choice(words[name] if words[name] and drawn.random() < 0.8 else numbers[name])
            for name in names
        }


def look(
    file: str, scope: Mapping[str, Scalar], seed: int = 0, *, current: Mapping[str, Scalar] | None = None
) -> list[Finding]:
    """Return what is found with one line of a log for each rule that reads one."""
    rules, drawn = RULES[file], Random(seed)  # noqa: S311 - no secret
    lines = [drawn.choice(of) for rule, of in MESSAGES.items() if rule.partition(".")[0] in {file, "server"}]
    read = [LogLine(text=line, source="error.log", at_s=0.0) for line in lines]
    log = tuple(cut_messages(read, FORMS.get(file), PROCESSES))
    return list(
        judge(
            SeenServer(
                server=file, rules=rules, scope=scope, current=current or {}, kernel={}, files={}, log=log,
                kernel_log=log, now_s=0.0, started_s=0.0,
            )
        )
    )  # fmt: skip


@pytest.mark.parametrize("file", RULES)
def test_each_proposal_lifts_its_limit_whatever_is_read(file: str):
    rules = RULES[file]
    proposed: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for seed, scope in enumerate(make_scopes(rules, seed=1)):
        for finding in look(file, scope, seed):
            for each in finding.proposals:
                entry = rules.file.rules[finding.rule.partition(".")[2]].settings[each.name]
                if entry.outside is not None and entry.current is None and each.current is not None:
                    wrong.append(f"{finding.rule}: {each.name} is not known there")
                proposed[finding.rule, each.name] += each.value is not None or entry.value is None
                if each.value is None or isinstance(each.value, (bool, str)):
                    continue
                is_lifted = each.current is None or isinstance(each.current, str) or {
                    "higher": each.value > each.current, "lower": each.value < each.current,
                    "other": each.value != each.current,
                }[entry.lifts]  # fmt: skip
                if not (is_lifted and each.value == int(each.value) and 0 <= each.value <= LARGEST):
                    wrong.append(f"{finding.rule}: {each.name} {each.current} -> {each.value}")
    never = [
        (f"{file}.{name}", setting)
        for name, rule in rules.file.rules.items()
        for setting in rule.settings
        if not proposed[f"{file}.{name}", setting]
    ]

    assert sorted(set(wrong))[:5] == []
    assert never == []


def test_a_setting_that_only_makes_room_for_another_is_not_proposed_alone():
    facts = {"worker_connections": 65535, "open_files_limit": 7488, "open_files_most": 20000}
    (found,) = [each for each in look("nginx", facts) if each.rule == "nginx.worker_connections"]

    assert found.proposals == ()


POOLS = ((5, 1, 2, 3), (8, 5, 7, 8), (20, 4, 9, 16), (1, 1, 1, 1))


@pytest.mark.parametrize("pool", POOLS)
def test_no_proposal_makes_a_pool_that_php_fpm_refuses(pool: tuple[int, ...]):
    names = ("pm.max_children", "pm.min_spare_servers", "pm.start_servers", "pm.max_spare_servers")
    pool_now = {**dict(zip(names, pool, strict=True)), "pm": "dynamic"}
    for scope in make_scopes(RULES["php-fpm"], seed=2):
        now = {name.replace(".", "_"): value for name, value in pool_now.items()}
        for finding in look("php-fpm", {**scope, **now, "another_pool": "none"}):
            then = {**pool_now, **{each.name: each.value for each in finding.proposals if each.value}}
            most, least, start, spare = (int(then[name]) for name in names)
            assert 1 <= least <= start <= spare <= most, finding.rule


def test_a_finding_whose_settings_lift_nothing_says_so():
    scope = {"conntrack_drops": 3, "look_s": 1.0, "neighbours_max": 8192}
    ports = {"ports": 64512, "ports_used": 64000, "net_ipv4_tcp_tw_reuse": 1}
    found = look("kernel", {**scope, **ports, "net_ipv4_ip_local_port_range_0": 1024})
    (limited,) = [each for each in found if each.rule == "kernel.local_ports"]

    assert limited.proposals == ()
    told = Advice(host="web1", servers=(), findings=(limited,), unread=(), look_s=1.0)
    assert "tuner knows no setting that lifts this limit further" in advice_text(told)
    assert "Nothing: tuner knows no setting" in advice_page(told)
