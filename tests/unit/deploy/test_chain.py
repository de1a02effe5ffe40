import pytest

from tuner.deploy.chain import link
from tuner.errors import UsageError
from tuner.ports import FASTCGI, HTTP, Facts

FRONT = Facts(passes_to=frozenset({HTTP, FASTCGI}))
PLAIN = Facts()
PROGRAMS = Facts(speaks=FASTCGI, port=9000)
KERNEL = Facts(port=None)
BALANCER = Facts(passes_to=frozenset({HTTP}), needs_backend=True)


def test_one_server_is_under_load_on_its_usual_port():
    chain = link({"kernel": KERNEL, "web": PLAIN}, {})

    assert (chain.front, chain.port, chain.from_the_end) == ("web", 8080, ("web",))


def test_each_server_passes_requests_to_the_next_and_has_a_port_of_its_own():
    chain = link({"front": FRONT, "kernel": KERNEL, "second": FRONT, "programs": PROGRAMS}, {})

    assert chain.ports == {"front": 8080, "second": 8081, "programs": 9000}
    assert chain.from_the_end == ("programs", "second", "front")


def test_a_study_may_say_whose_backend_a_server_is():
    facts = {"front": FRONT, "programs": PROGRAMS, "second": FRONT}

    chain = link(facts, {"front": "second", "second": "programs"})

    assert chain.from_the_end == ("programs", "second", "front")


def test_a_server_that_only_passes_requests_on_stands_before_one_that_answers():
    assert link({"balancer": BALANCER, "web": PLAIN}, {}).from_the_end == ("web", "balancer")


@pytest.mark.parametrize(
    ("facts", "backends", "message"),
    [
        (
            {"kernel": KERNEL},
            {},
            r"servers: none of kernel accepts connections from the load generator\. Add a web server to ",
        ),
        (
            {"programs": PROGRAMS},
            {},
            "programs speaks fastcgi, which no load generator speaks. Put a web server",
        ),
        (
            {"web": PLAIN, "other": PLAIN},
            {},
            r"web cannot pass requests to other \(http\). Put another server",
        ),
        ({"a": FRONT, "b": FRONT}, {"a": "c"}, "the backend of a is 'c', which is no server of this study"),
        ({"a": FRONT, "kernel": KERNEL}, {"a": "kernel"}, "'kernel', which is no server of this study"),
        (
            {"a": FRONT, "kernel": KERNEL},
            {"kernel": "a"},
            "kernel cannot have a backend, because it receives no",
        ),
        ({"a": FRONT, "b": FRONT}, {"a": "b", "b": "a"}, "b passes requests back to a, in a circle"),
        ({"a": FRONT, "b": FRONT, "c": FRONT}, {"a": "c"}, "no server passes requests to b"),
        (
            {"a": BALANCER},
            {},
            r"a answers no request itself, .* Put a server behind it, as `servers: \[a, WEB",
        ),
        ({"a": FRONT, "b": BALANCER}, {}, "b answers no request itself"),
        ({"a": BALANCER, "kernel": KERNEL}, {}, "a answers no request itself"),
    ],
)
def test_servers_that_cannot_stand_so_are_refused(
    facts: dict[str, Facts], backends: dict[str, str], message: str
):
    with pytest.raises(UsageError, match=message):
        link(facts, backends)
