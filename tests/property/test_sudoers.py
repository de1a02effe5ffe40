"""What a study needs is what the real sudo allows with the file that tuner prints, and nothing beside it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.more import examples
from tuner.adapters.hosts.local import LocalHost
from tuner.hosts.sudoers import write_sudoers
from tuner.ports import Argv

USER = "daemon"
"""Every machine has it, and sudo lets it do nothing."""
ASK = """
mount -t tmpfs -o mode=755 tmpfs /etc/sudoers.d
while IFS= read -r count; do
  head -c "$count" >/etc/sudoers.d/tuner
  read -r words
  set --
  while [ "$#" -lt "$words" ]; do IFS= read -r word; set -- "$@" "$word"; done
  sudo -n -U "$0" -l "$@" >/dev/null 2>&1
  echo "$?"
done
"""
WORDS = st.text(
    st.one_of(
        st.sampled_from("\\,:=#*?[]!^ '$%~&|;<>(){}@+-é"), st.characters(min_codepoint=33, max_codepoint=126)
    ),
    min_size=1,
    max_size=8,
).filter(lambda word: '"' not in word and word[0] != "^" and word == word.strip())
ARGV = st.lists(WORDS, max_size=4).map(lambda words: ("cat", *words))


class Sudo:
    """The real one, with a sudoers.d of its own."""

    def __init__(self, asked: "subprocess.Popen[bytes]", place: str) -> None:
        self._asked = asked
        self._place = place

    def allows(self, text: str, argv: Argv) -> bool:
        encoded = text.encode()
        words = [self._place, *argv[1:]]
        self._asked.stdin.write(b"%d\n%b%d\n" % (len(encoded), encoded, len(words)))
        self._asked.stdin.write(b"".join(b"%b\n" % word.encode() for word in words))
        self._asked.stdin.flush()
        return self._asked.stdout.readline() == b"0\n"


@pytest.fixture(scope="module")
def sudo() -> Iterator[Sudo]:
    place = subprocess.run(["sh", "-c", "command -v cat"], check=True, capture_output=True, text=True).stdout
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", ASK, USER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as asked:
        yield Sudo(asked, place.strip())
        asked.stdin.close()


def read_back(text: str, folder: Path) -> list[str]:
    """Read the commands of a file, as cvtsudoers reads them."""
    path = folder / "sudoers"
    path.write_text(text)
    path.chmod(0o440)
    subprocess.run(["/usr/sbin/visudo", "-cf", path], check=True, capture_output=True)
    printed = subprocess.run(["cvtsudoers", "-f", "json", path], check=True, capture_output=True).stdout
    (spec,) = json.loads(printed)["User_Specs"]
    assert spec["User_List"] == [{"username": USER}]
    (group,) = spec["Cmnd_Specs"]
    return [each["command"] for each in group["Commands"]]


def unescape(pattern: str) -> str:
    """Read a pattern of fnmatch(3) in which nothing is left that matches more than itself."""
    plain, letters = "", iter(pattern)
    for letter in letters:
        assert letter not in "*?["
        plain += next(letters) if letter == "\\" else letter
    return plain


@given(argvs=st.lists(ARGV, min_size=1, max_size=5))
@settings(max_examples=examples(40))
def test_what_comes_back_is_exactly_what_was_asked(tmp_path_factory, argvs):
    text = write_sudoers(LocalHost(), USER, argvs)

    found = [unescape(each).partition(" ")[2] for each in read_back(text, tmp_path_factory.mktemp("sudoers"))]

    assert found == [" ".join(argv[1:]) or '""' for argv in dict.fromkeys(argvs)]


@given(argv=ARGV, other=ARGV)
@settings(max_examples=examples(100))
def test_sudo_allows_the_command_and_no_other(sudo, argv, other):
    assume(" ".join(argv) != " ".join(other))
    text = write_sudoers(LocalHost(), USER, [argv])

    assert sudo.allows(text, argv)
    assert not sudo.allows(text, other)
    assert not sudo.allows(text, (*argv, "more"))
    assert not sudo.allows(text, argv[:-1] if len(argv) > 1 else (*argv, "x"))


@pytest.mark.parametrize("name", ["ALL", "OPERATORS", "daemon.x", "daemon@example.org"])
def test_a_name_of_somebody_else_lets_nobody_in(sudo, name):
    assert not sudo.allows(write_sudoers(LocalHost(), name, [("cat", "a")]), ("cat", "a"))
