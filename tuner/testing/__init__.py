"""Test support for adapters: contract suites for pytest, and hosts in memory. Needs pytest.

servers: what every server adapter keeps to; `python -m tuner.testing NAME` runs it for a registered one.
machines: a machine with nothing installed, private sites, a copy of this machine.
loads: what every load generator keeps to; subclass LoadContract and give it a fixture `load`.
misbehaving_server: the HTTP server with the faults that a load generator must see.
fakes: hosts in memory, for tests that run nothing.
"""

import pytest

pytest.register_assert_rewrite("tuner.testing.loads", "tuner.testing.machines", "tuner.testing.servers")
