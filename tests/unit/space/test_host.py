"""A space on a host: versions, paths, active values, risks."""

import pytest

from tests.unit.space.samples import facts, load, with_parameter
from tuner.errors import UsageError
from tuner.space import Space, load_space

INT = "kind: int, low: 1, high: 9, default: 3"
CURRENT = "kind: int, low: 16, high: 1024, scale: log, default: current"


def one(body: str, folder, rest: str = "", **changes: object) -> Space:
    return load(with_parameter(body, rest), folder, **changes)


@pytest.mark.parametrize(
    ("limits", "version", "reason"),
    [
        ("since: 1.20", (1, 19, 9), "it exists since 1.20, demo here is 1.19.9"),
        ("since: 1.20", (1, 20), None),
        ("since: '1.9'", (1, 10), None),
        ("until: 1.20", (1, 20, 0), "it was removed in 1.20, demo here is 1.20.0"),
        ("until: 1.20", (1, 19), None),
        ("since: 1.5, until: 2", (1, 7), None),
        ("since: 99", (), None),
        ("until: 1", (), None),
    ],
)
def test_versions_decide_what_is_there(tmp_path, limits, version, reason):
    space = one(f"{INT}, {limits}", tmp_path, versions={"demo": version})

    assert space.left_out.get("x") == reason
    assert ("x" in space.default()) is (reason is None)


def test_a_path_decides_what_is_there(tmp_path):
    body = f"{INT}, exists: /proc/sys/x"

    assert "x" in one(body, tmp_path, exists=lambda path: path == "/proc/sys/x").default()
    assert one(body, tmp_path, exists=lambda _: False).left_out == {"x": "this host has no /proc/sys/x"}


def test_what_belongs_to_the_whole_host_is_left_out_in_a_sandbox(tmp_path):
    body = f"{INT}, scope: host"

    assert "a sandbox does not touch" in one(body, tmp_path, sandbox=True).left_out["x"]
    assert "x" in one(body, tmp_path, sandbox=False).default()
    assert "x" in one(f"{INT}, scope: netns", tmp_path, sandbox=True).default()


def test_what_has_no_effect_over_loopback_is_left_out_there(tmp_path):
    body = f"{INT}, loopback: false"

    assert "loopback" in one(body, tmp_path, loopback=True).left_out["x"]
    assert "x" in one(body, tmp_path, loopback=False).default()


def test_expressions_see_the_default_of_what_is_left_out(tmp_path):
    space = one(f"{INT}, since: 9", tmp_path, "derived: {d: {value: x + n}}\n", versions={"demo": (1,)})

    assert space.default() == {"n": 3, "flag": False, "d": 6}


def test_a_parameter_that_can_never_be_active_is_left_out(tmp_path):
    space = one(f"{INT}, when: cores > 2", tmp_path)

    assert space.left_out == {"x": "`cores > 2` does not hold here"}


def test_a_parameter_whose_condition_is_pinned_off_is_left_out(tmp_path):
    text = with_parameter(f"{INT}, when: flag")

    assert load(text, tmp_path, {"set": {"flag": "off"}}).left_out == {
        "x": "`flag` does not hold (flag: held by `set:`)"
    }
    assert load(text, tmp_path, {"without": ["flag"]}).left_out == {
        "x": "`flag` does not hold (flag: named by `without:`)"
    }
    assert "x" in load(text, tmp_path, {"set": {"flag": "on"}}).default()


def test_bounds_over_pinned_parameters_are_fixed(tmp_path):
    space = load(with_parameter("kind: int, low: 1, high: 2 * n, default: 2"), tmp_path, {"without": ["n"]})

    assert (space.dimensions[0].name, space.dimensions[0].kind, space.dimensions[0].high) == ("x", "int", 6)


class TestValuesInForce:
    def test_they_are_the_default(self, tmp_path):
        assert one(CURRENT, tmp_path, current={"x": 512}).default()["x"] == 512

    def test_as_text_they_are_read(self, tmp_path):
        assert one(CURRENT, tmp_path, current={"x": "512"}).default()["x"] == 512

    @pytest.mark.parametrize("current", [{}, {"x": "cubic"}, {"x": 2.5}])
    def test_unknown_ones_leave_the_parameter_and_what_depends_on_it_out(self, tmp_path, current):
        rest = "derived: {d: {value: x + 1}, e: {value: d + 1}}\nconstraints: [{rule: x < n}]\n"
        space = one(CURRENT, tmp_path, rest, current=current)

        assert space.left_out == {
            "x": "its active value on this host is not known",
            "d": "this setting depends on x, which is left out",
            "e": "this setting depends on d, which is left out",
        }
        assert space.violations(space.default()) == ()

    @pytest.mark.parametrize(("current", "low", "high"), [(4, 4, 1024), (9999, 16, 9999)])
    def test_outside_the_range_they_stretch_it(self, tmp_path, current, low, high):
        space = one(CURRENT, tmp_path, current={"x": current})

        assert (space.dimensions[0].low, space.dimensions[0].high) == (low, high)
        assert space.violations(space.default()) == ()

    def test_zero_on_a_log_scale_becomes_a_special_value(self, tmp_path):
        space = one(CURRENT, tmp_path, current={"x": 0})

        assert space.default()["x"] == 0
        assert space.parameters[0].special == {"current": 0}
        assert space.decode(space.encode(space.default())) == space.default()

    def test_a_declared_special_value_is_that(self, tmp_path):
        space = one(f"{CURRENT}, special: {{off: 0}}", tmp_path, current={"x": 0})

        assert space.show("x", space.default()["x"]) == "off"

    def test_off_the_grid_they_become_a_special_value(self, tmp_path):
        space = one(f"{CURRENT}, step: 16", tmp_path, current={"x": 100})

        assert space.default()["x"] == 100
        assert space.decode(space.encode(space.default())) == space.default()

    def test_outside_bounds_that_depend_on_others_they_stay_possible(self, tmp_path):
        space = one("kind: int, low: n, high: 99, default: current", tmp_path, current={"x": 1})

        assert space.default()["x"] == 1
        assert space.violations(space.default()) == ()
        assert space.decode(space.encode(space.default())) == space.default()

    def test_an_unlisted_choice_joins_the_choices(self, tmp_path):
        space = one(
            "kind: categorical, choices: [cubic, reno], default: current", tmp_path, current={"x": "bbr"}
        )

        assert space.default()["x"] == "bbr"
        assert space.dimensions[0].choices == ("cubic", "reno", "bbr")

    def test_trials_may_write_what_is_tuned_and_what_follows_from_it(self, tmp_path):
        more = (
            "  near: {kind: int, low: x, high: 99, default: 50}\n"
            "  far: {kind: int, low: 1, high: 99, default: near}\n"
            "  other: {kind: int, low: 1, high: 99, default: 5}\n"
            "derived:\n  'last[1]': {value: far + 1}\n"
        )
        space = load(with_parameter(INT, more), tmp_path, {"only": ["x"]})

        assert space.may_change == {"x", "near", "far", "last[1]"}

    @pytest.mark.parametrize(("current", "value"), [(1, True), ("0", False), (True, True)])
    def test_a_bool_is_read_as_the_kernel_shows_it(self, tmp_path, current, value):
        assert one("kind: bool, default: current", tmp_path, current={"x": current}).default()["x"] is value

    def test_a_host_that_breaks_a_rule_already_is_not_refused(self, tmp_path):
        space = one(CURRENT, tmp_path, "constraints: [{rule: x <= 100}]\n", current={"x": 512})

        assert len(space.violations(space.default())) == 1


class TestRisks:
    TEXT = with_parameter(
        "kind: bool, default: on, risk: semantic",
        "  danger: {kind: bool, default: off, risk: risky}\n",
    )

    def tuned(self, folder, *refinements) -> set[str]:
        return {dimension.parameter for dimension in load(self.TEXT, folder, *refinements).dimensions}

    def test_only_safe_parameters_are_tuned_unless_others_are_allowed(self, tmp_path):
        assert self.tuned(tmp_path) == {"n", "flag"}
        assert self.tuned(tmp_path, {"allow": ["semantic"]}) == {"n", "flag", "x"}
        assert self.tuned(tmp_path, {"allow": ["semantic"]}, {"allow": ["risky"]}) == {
            "n",
            "flag",
            "x",
            "danger",
        }

    def test_the_others_are_in_the_configuration_at_their_default_and_say_why(self, tmp_path):
        space = load(self.TEXT, tmp_path)

        assert (space.default()["x"], space.default()["danger"]) == (True, False)
        assert {each.name: each.pinned for each in space.parameters if each.pinned} == {
            "x": "its risk is semantic, and `allow:` does not name semantic",
            "danger": "its risk is risky, and `allow:` does not name risky",
        }

    def test_they_may_be_held_at_another_value(self, tmp_path):
        assert load(self.TEXT, tmp_path, {"set": {"x": "off"}}).default()["x"] is False

    def test_an_unknown_risk_is_refused(self, tmp_path):
        with pytest.raises(
            UsageError,
            match=r"^space entry 2: allow\.0: 'semantics' is no known value\. Did you mean semantic",
        ):
            load(self.TEXT, tmp_path, {"allow": ["semantics"]})


def test_what_hangs_on_a_backend_takes_nothing_along_where_there_is_none(tmp_path):
    packaged = load_space(["nginx"], facts=facts(), base=tmp_path).default()
    installed = facts(sandbox=False, installed=True, current=packaged)
    space = load_space(["nginx"], facts=installed, base=tmp_path)

    assert {"upstream_keepalive", "upstream_idle"} <= space.left_out.keys()
    assert "worker_connections" in space.default()
