"""Settings as lines to merge by hand."""

from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.simulated_study import make_summary
from tuner.export import Rendered, export
from tuner.export.listing import list_changes

MAIN = PurePosixPath("/run/tuner-export/server.conf")
BLOCKS = """\
worker_processes auto;
events {
    worker_connections 768;
}
http {
    gzip on;
    sendfile on;

    server {
        listen 80;
    }
}
"""


def change(before: str, after: str) -> str:
    return "\n".join(list_changes(before.splitlines(), after.splitlines()))


def test_a_line_is_listed_within_its_sections_with_what_it_replaces() -> None:
    after = BLOCKS.replace("768", "4096").replace("listen 80", "listen 80 backlog=9")

    assert change(BLOCKS, after) == (
        "events {\n    # was: worker_connections 768;\n    worker_connections 4096;\n}\n"
        "http {\n    server {\n        # was: listen 80;\n        listen 80 backlog=9;\n    }\n}"
    )


def test_a_line_that_goes_is_a_comment_in_its_section() -> None:
    assert change(BLOCKS, BLOCKS.replace("    sendfile on;\n", "")) == "http {\n    # was: sendfile on;\n}"


def test_sections_without_braces_are_kept_apart() -> None:
    before = "num-threads: 2\nhosts:\n  default:\n    listen: 80\nmax-connections: 9\n"
    after = "num-threads: 3\nhosts:\n  default:\n    listen: 81\nmax-connections: 9\n"

    assert change(before, after) == (
        "# was: num-threads: 2\nnum-threads: 3\nhosts:\n  default:\n    # was: listen: 80\n    listen: 81"
    )


LINES = st.lists(
    st.builds("{}{}".format, st.sampled_from(["", "  ", "    "]), st.sampled_from("abc}")), max_size=9
)


@given(LINES, LINES)
def test_every_line_that_is_new_is_listed_and_every_line_that_went_is_a_comment(
    before: list[str], after: list[str]
) -> None:
    listed = list(list_changes(before, after))
    new = [line for line in listed if "# was: " not in line]
    gone = [line.replace("# was: ", "") for line in listed if "# was: " in line]

    for line in set(after):
        assert new.count(line) >= after.count(line) - before.count(line)
    for line in set(before):
        assert gone.count(line) >= before.count(line) - after.count(line)
    rest = iter(after)
    assert all(line in rest for line in new), "in the order of the file"
    assert (listed == []) == (before == after)


def test_the_head_says_why_nothing_is_patched_and_what_stands_for_the_logs() -> None:
    log = f"access_log {MAIN.parent}/access.log"
    rendered = Rendered(
        default={MAIN: f"{log};\n".encode()},
        winner={MAIN: f"{log} buffer=64k;\n".encode()},
        reason="no nginx.conf.",
    )
    (listing,) = export(make_summary(searches=4), "nginx", rendered={"nginx": rendered}).items()

    name, text = listing[0], listing[1].decode()
    assert name == "tuner-nginx-settings.conf"
    assert "# the installed files are not changed: no nginx.conf.\n" in text
    assert "# /run/tuner-export stands for the directory of your own logs\n" in text
    assert text.endswith(f"\n# was: {log};\n{log} buffer=64k;\n")


def test_lines_of_several_files_stand_below_the_names_of_their_files() -> None:
    other, same = MAIN.with_name("environment"), MAIN.with_name("same")
    before = {MAIN: b"a 1;\n", other: b"export B=1\n", same: b"c\n"}
    rendered = Rendered(default=before, winner={**before, other: b"export B=2\n"})
    (text,) = export(make_summary(searches=4), "nginx", rendered={"nginx": rendered}).values()

    assert text.decode().endswith("\n\n# file: environment\n# was: export B=1\nexport B=2\n")


def test_nothing_is_listed_when_nothing_differs() -> None:
    rendered = Rendered(default={MAIN: b"a 1;\n"}, winner={MAIN: b"a 1;\n"})

    assert export(make_summary(searches=4), "nginx", rendered={"nginx": rendered}) == {}
