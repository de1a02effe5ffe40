"""Any configuration of the space can be written into any installed nginx, and nothing else is changed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.installed import mount
from tests.more import examples
from tests.property.space_strategies import points
from tests.unit.adapters.servers.nginx.layouts import LAYOUTS, MAIN, find
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.nginx.settings import SETTINGS
from tuner.adapters.servers.nginx.tree import read_tree
from tuner.ports import Files, FileState, Installation, Sandbox, Scalar
from tuner.space import Space, SpaceFacts, load_space

COMMENT = b"#[^\n]*"
FOLDERS = ("/etc/nginx", "/usr/share/nginx")
WRITTEN_WITH_OTHERS = {"open_file_cache_inactive", "access_log_buffer"}
few = settings(max_examples=examples(8), deadline=None)
many = settings(max_examples=examples(20), deadline=None)


@cache
def load() -> Space:
    names: dict[str, Scalar] = {
        "cores": 2, "memory_mib": 8192, "connections": 100, "open_files_max": 100_000, "somaxconn": 4096,
    }  # fmt: skip
    sources: list[object] = ["nginx", {"allow": ["semantic", "risky"]}]
    return load_space(sources, facts=SpaceFacts(names=names, versions={"nginx": (1, 22, 1)}), base=Path())


@dataclass(frozen=True)
class Place:
    """Where a layout is installed for real."""

    sandbox: Sandbox

    def put(self, files: Files) -> Installation:
        """Install these files alone."""
        run(self.sandbox, "find", *FOLDERS, "-type", "f", "-delete")
        for path, content in files.items():
            # The user of another distribution is not here.
            here = content.replace(b"user nginx;", b"user www-data;")
            self.sandbox.write(self.sandbox.directory / path.relative_to("/"), FileState(content=here))
        return Nginx().find(self.sandbox)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A sandbox whose /etc/nginx and /usr/share/nginx are its own."""
    with LocalHost().sandbox() as sandbox:
        for folder in FOLDERS:
            own = f"{sandbox.directory}{folder}"
            run(sandbox, "mkdir", "-p", own)
            mount(sandbox, "--bind", own, folder)
        for folder in ("/run", "/var/log/nginx", "/var/lib/nginx"):
            mount(sandbox, "-t", "tmpfs", "tmpfs", folder)
        yield Place(sandbox=sandbox)


def run(sandbox: Sandbox, *argv: str) -> None:
    completed = sandbox.run(argv, timeout_s=10)
    assert completed.returncode == 0, completed.stderr.decode()


def change(installation: Installation, config: Mapping[str, Scalar]) -> Files:
    """Give all files as they are afterwards."""
    return {**installation.files, **Nginx().rewrite(config, installation)}


def skeleton(installation: Installation, changed: set[str]) -> list[tuple[str, ...]]:
    """Give what is to stay: all directives but these, word by word."""
    everything = read_tree(installation).walk()
    return [tuple(word.text for word in each.words) for each in everything if each.name not in changed]


@pytest.mark.parametrize("name", LAYOUTS)
@few
@given(data=st.data())
def test_nginx_takes_any_configuration_in_any_layout_and_it_is_found_again(
    name: str, place: Place, data: st.DataObject
):
    installed = place.put(LAYOUTS[name])
    current = installed.facts.current
    config = load().for_server(load().decode(data.draw(points(load()))), "nginx")

    afterwards = place.put(change(installed, config))
    checked = place.sandbox.run(installed.service.check, timeout_s=20)

    assert (checked.returncode, Nginx().refusals(checked)) == (0, ()), config
    assert afterwards.files.keys() == installed.files.keys()
    assert {key: afterwards.facts.current[key] for key in config} == dict(config)
    others = current.keys() - config.keys() - WRITTEN_WITH_OTHERS
    assert {key: afterwards.facts.current[key] for key in others} == {key: current[key] for key in others}
    assert Nginx().rewrite(config, afterwards) == {}


@pytest.mark.parametrize("name", LAYOUTS)
@many
@given(data=st.data())
def test_directives_and_comments_that_do_not_change_stay_byte_for_byte(name: str, data: st.DataObject):
    installed = find(name)
    config = load().for_server(load().decode(data.draw(points(load()))), "nginx")
    differing = {key for key, value in config.items() if value != installed.facts.current.get(key)}
    changed = {each.directive for each in SETTINGS if differing & set(each.parameters)}
    changed |= {"listen" for key in differing if key.startswith("listen_")}

    files = change(installed, config)

    assert skeleton(find(name, files), changed) == skeleton(installed, changed)
    for path, content in installed.files.items():
        assert re.findall(COMMENT, files[path]) == re.findall(COMMENT, content)
        assert files[path].count(b"\r\n") - content.count(b"\r\n") in {
            0,
            files[path].count(b"\n") - content.count(b"\n"),
        }


@pytest.mark.parametrize("name", LAYOUTS)
@many
@given(data=st.data())
def test_a_configuration_that_is_taken_back_is_the_one_that_was_there(name: str, data: st.DataObject):
    installed = find(name)
    config = load().for_server(load().decode(data.draw(points(load()))), "nginx")
    changed = find(name, change(installed, config))

    back = find(name, change(changed, installed.facts.current))

    assert installed.facts.current.items() <= back.facts.current.items()


text = st.text(st.sampled_from(list("ab${}();#'\"\\ \t\r\n\x85é")), max_size=60)


@settings(max_examples=examples(300), deadline=None)
@given(comment=text, word=text)
def test_whatever_stands_in_comments_and_quotes_is_passed_over(comment: str, word: str):
    inside = comment.replace("\n", " ").encode()
    quoted = re.sub(r'(["\\])', r"\\\1", word).encode()
    before = b'events { }#%s\nhttp { log_format a "%s"; sendfile on;#%s\n server { listen 80; } }\n' % (
        inside, quoted, inside,
    )  # fmt: skip

    files = change(find("debian-12", {MAIN: before}), {"sendfile": False})

    assert files == {MAIN: before.replace(b"sendfile on;", b"sendfile off;")}
