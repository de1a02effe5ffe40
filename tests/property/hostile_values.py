"""Values that end a word, a line or a block in the syntax of some server, or are numbers that none takes."""

from hypothesis import strategies as st

from tuner.ports import Scalar

INJECTIONS = (
    "1; error_log /tmp/x debug; thread_pool b threads=1", "on; load_module /tmp/x.so", "off;}", "1}",
    "{", "}", "5\nLoadModule x /tmp/x.so", "On\r\nUser root", "5\\\nErrorLog |id", '" \n',
    "combined\n|id", '"|id" common', "|/bin/sh", "combined env=x", "data none", "5 6", "1k;",
    "auto;user root", "ON\nuser: root", "1, user: root", "[1]", "&a 1", "*a",
    "!!python/object:os.system 1", "1 # x", "#", "'", '"', "\\", "$pid", "${HOME}", "%{x}",
    "</VirtualHost>", "<If true>", "yes\n[global]\npid=/x", "static ; x", "x\nuser=root", "4096 1 2",
    "1\n/bin/sh", "bbr\x00", "\x00", "\u2028user root;", "\ud800", "\x85a", "\x0bb", "", " ", "\t",
    "x"*5000, "1e4", "0x10", "-1", "1_0", "\u0665", "max=9 inactive=1s; x", "default_server reuseport",
    "../../etc/passwd",
)  # fmt: skip
WORDS = (
    "on", "off", "auto", "threads", "always", "data", "none", "combined", "common", "static", "dynamic",
    "On", "ON", "reno", "cubic",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 64, 511, 65535, 2**31-1, 2**31, 2**32, 2**64, -(2**63), 10**18, 10**40, 0.5, 1.0, -0.0,
    1e-9, 1e300, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip

scalars: st.SearchStrategy[Scalar] = (
    st.sampled_from(INJECTIONS)
    | st.sampled_from(WORDS)
    | st.sampled_from(NUMBERS)
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.text(alphabet=" \t\r\n;{}[]()<>#'\"\\$%|&*!=:,x1\x00\u2028", max_size=12)
)
"""Anything that the space language, or a stored configuration, could give as a value."""
