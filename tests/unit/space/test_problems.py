"""The nearest known name is one that was likely meant."""

import pytest

from tuner.space.problems import suggest

LOAD = ("generator", "path", "connections", "keepalive", "threads", "accept_encoding", "requests", "host")


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("conections", LOAD, "connections"),
        ("Conections", LOAD, "connections"),
        ("keep-alive", LOAD, "keepalive"),
        ("encoding", LOAD, "accept_encoding"),
        ("theards", LOAD, "threads"),
        ("pth", LOAD, "path"),
        ("hots", LOAD, "host"),
        ("request", LOAD, "requests"),
        ("somaxconn", ("net.core.somaxconn", "net.core.rmem_max"), "net.core.somaxconn"),
    ],
)
def test_a_typing_error_is_recognized(name: str, known: tuple[str, ...], meant: str):
    assert suggest(name, known) == f"Did you mean {meant}?"


@pytest.mark.parametrize("name", ["headers", "auth", "url", "on", "", "timeout"])
def test_another_word_is_answered_with_what_there_is(name: str):
    assert suggest(name, LOAD) == f"Known are {', '.join(sorted(LOAD))}."
