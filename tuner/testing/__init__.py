"""Test support for adapters: contract suites for pytest, and a host in memory. Needs pytest.

loads: what every load generator keeps to; subclass LoadContract and give it a fixture `load`.
misbehaving_server: the HTTP server with the faults that a load generator must see.
fakes: hosts in memory, for tests that run nothing.
"""

import pytest

pytest.register_assert_rewrite("tuner.testing.loads")
