"""The JSON Schema of study files accepts what tuner reads, and underlines what tuner refuses."""

import http.server
import json
import re
from pathlib import Path
from threading import Thread
from typing import Any

import jsonschema
import pytest
import yaml

from docs.generate.study_file import write_page
from tests.unit.editor import find_faults
from tuner import plugins
from tuner.commands.template import SCHEMA, copy_study, write_study
from tuner.errors import UsageError
from tuner.ports import PrivateServer
from tuner.study import load_study
from tuner.study.named_studies import named_studies
from tuner.study.schema import json_schema

ROOT = Path(__file__).parents[3]
PUBLISHED = json_schema()
WHOLE = (ROOT / "tests/unit/study/whole.yaml").read_text()
SMALL = "study: a\nservers: [nginx]\nspace: [nginx]\n"
MANAGED = f"{SMALL}target: {{mode: managed}}\n"
BLOCK = re.compile(r"^```yaml\n(study:.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def faults(text: str) -> list[str]:
    return find_faults(text, PUBLISHED)


def is_of_a_study(model: Any) -> bool:
    """Tell the models of a study from those of a space, which have no examples."""
    return any("examples" in of for of in model["properties"].values())


def is_read(folder: Path, text: str) -> bool:
    path = folder / "study.yaml"
    path.write_text(text)
    try:
        load_study(path)
    except UsageError:
        return False
    return True


def test_the_committed_schema_is_the_generated_one():
    assert SCHEMA.read_text(encoding="utf-8") == json.dumps(PUBLISHED, indent=1) + "\n", (
        "write it again: tuner schema > search_spaces/study.schema.json"
    )


def test_it_is_a_valid_schema_in_which_every_key_is_explained():
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)

    models = [PUBLISHED, *PUBLISHED["$defs"].values()]
    assert [
        key for model in models for key, of in model["properties"].items() if "description" not in of
    ] == []


def test_every_key_has_an_example_that_is_accepted():
    keys = [
        (name, key, of["properties"][key])
        for name, of in (("", PUBLISHED), *PUBLISHED["$defs"].items())
        if is_of_a_study(of)
        for key in of["properties"]
    ]
    for name, key, told in keys:
        validator = jsonschema.Draft202012Validator({**told, "$defs": PUBLISHED["$defs"]})
        assert [error.message for each in told["examples"] for error in validator.iter_errors(each)] == [], (
            f"{name}.{key}"
        )
        assert len(told["examples"]) == 1


def test_the_reference_has_every_key_with_its_example(tmp_path: Path):
    write_page(tmp_path)

    page = (tmp_path / "study-file.md").read_text()
    keys = {
        key
        for of in (PUBLISHED, *PUBLISHED["$defs"].values())
        for key in of["properties"]
        if is_of_a_study(of)
    }
    assert [key for key in keys if f"### `{key}`" not in page] == []
    assert page.count("### ") == page.count(":Example: ")


@pytest.mark.parametrize("path", named_studies().values(), ids=lambda path: path.stem)
def test_it_accepts_the_studies_that_come_with_tuner(path: Path):
    assert faults(path.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_it_accepts_every_whole_study_of_the_pages(page: Path):
    assert [found for block in BLOCK.findall(page.read_text()) for found in faults(block)] == []


def test_some_page_has_a_whole_study():
    assert any(BLOCK.search(page.read_text()) for page in PAGES)


@pytest.fixture(scope="module")
def page():
    """Serve a page, for studies of what is tuned while an installed server makes one."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object):
        """Say nothing."""


@pytest.mark.parametrize("server", sorted({*plugins.adapter_names(plugins.AdapterKind.SERVER)} - {"command"}))
def test_it_accepts_what_init_writes_for_each_server(tmp_path: Path, server: str, page: str):
    url = None if isinstance(plugins.make_server(server), PrivateServer) else page

    assert faults(write_study(server, tmp_path / "study.yaml", url=url).read_text()) == []


@pytest.mark.parametrize(
    "make", [lambda path: write_study("nginx", path), lambda path: copy_study("nginx-2015", path)]
)
def test_a_study_names_the_schema_of_this_installation_in_its_first_line(tmp_path: Path, make: Any):
    first, *_ = make(tmp_path / "study.yaml").read_text().splitlines()

    named = re.fullmatch(r"# yaml-language-server: \$schema=file://(\S+)", first)
    assert named is not None
    assert json.loads(Path(named[1]).read_text()) == PUBLISHED


def test_it_accepts_a_study_that_uses_every_key(tmp_path: Path):
    documents = [*yaml.safe_load_all(WHOLE)]
    texts = WHOLE.split("---\n")
    (tmp_path / "web.conf.j2").write_text("")

    assert [found for text in texts for found in faults(text)] == []
    assert all(is_read(tmp_path, text) for text in texts)
    assert {key for document in documents for key in document} == {*PUBLISHED["properties"]}
    assert {key for document in documents for key in document.get("load", {})} == {
        *PUBLISHED["$defs"]["LoadEntry"]["properties"]
    }


@pytest.mark.parametrize(
    "text",
    [
        "study: a\nservers: [nginx]\n",
        SMALL.replace("[nginx]", "nginx"),
        SMALL.replace("servers: [nginx]", "servers: []"),
        SMALL.replace("study: a", "study: a b"),
        f"{SMALL}lod: {{}}\n",
        f"{SMALL}load: {{conections: 3}}\n",
        f"{SMALL}load: {{connections: many}}\n",
        f"{SMALL}load: {{connections: 1.5}}\n",
        f"{SMALL}load: {{keepalive: perhaps}}\n",
        f"{SMALL}load: {{path: index.html}}\n",
        f"{SMALL}load: {{content: pictures}}\n",
        f"{SMALL}load: {{protocol: http/3}}\n",
        f"{SMALL}load: {{accept_encoding: br}}\n",
        f"{SMALL}load: {{requests: []}}\n",
        f"{SMALL}load: {{requests: [{{weight: 1}}]}}\n",
        f"{SMALL}load: {{requests: [{{path: /, method: HEAD}}]}}\n",
        f"{SMALL}load: {{requests: [{{path: /, sha256: abc}}]}}\n",
        f"{SMALL}load: {{time_limit_s: 9}}\n",
        f"{SMALL}load: {{}}\nloads: [{{name: a}}, {{name: b}}]\n",
        f"{SMALL}loads: [{{name: a}}]\n",
        f"{SMALL}loads: [{{name: a}}, {{name: b c}}]\n",
        f"{SMALL}across_loads: worst\n",
        f"{SMALL}check_loads: []\n",
        f"{SMALL}check_loads: [{{name: a}}]\n",
        f"{SMALL}check_loads: [{{name: a b, requests: [{{path: /}}]}}]\n",
        f"{SMALL}backend: {{port: 80}}\n",
        f"{SMALL}backend: {{command: []}}\n",
        f"{SMALL}target: {{mode: private}}\n",
        f"{MANAGED}load: {{host: web1}}\n",
        f"{SMALL}objective: minimize goodput_rps\n",
        f"{SMALL}objective: [minimize latency_p99_ms]\n",
        f"{SMALL}constraints: [failure_rate < 1]\n",
        f"{SMALL}constraints: [errors <= 1]\n",
        f"{SMALL}constraints: failure_rate <= 1\n",
        f"{SMALL}budget: {{preset: fast}}\n",
        f"{SMALL}budget: quick\n",
        f"{SMALL}storage: mysql\n",
        f"{SMALL}optimizer: bayes\n",
        "study: a\nservers: [{backend: nginx}]\nspace: [nginx]\n",
    ],
)
def test_it_underlines_what_tuner_refuses(tmp_path: Path, text: str):
    assert faults(text)
    assert not is_read(tmp_path, text)


@pytest.mark.parametrize("refinement", ["{onyl: [a]}", "{allow: [deadly]}", "{set: [a]}"])
def test_it_underlines_faults_in_a_refinement_of_a_space(refinement: str):
    assert faults(SMALL.replace("space: [nginx]", f"space: [nginx, {refinement}]"))


def bounded() -> list[Any]:
    """Return every key with bounds: how a study has it, and the bounds."""
    ways = {
        "TargetSettings": "target: {{mode: managed, {}}}", "LoadEntry": "load: {{protocol: h2, {}}}",
        "RequestEntry": "load: {{requests: [{{path: /, {}}}]}}",
        "NamedLoadEntry": "loads: [{{name: a, protocol: h2}}, {{name: b, protocol: h2, {}}}]",
        "CheckLoadEntry": "check_loads: [{{name: a, requests: [{{path: /}}], {}}}]",
        "BackendEntry": "backend: {{command: [a], {}}}", "BudgetEntry": "budget: {{{}}}",
    }  # fmt: skip
    places = [("{}", PUBLISHED), *((way, PUBLISHED["$defs"][name]) for name, way in ways.items())]
    return [
        pytest.param(way, key, of, id=f"{way.partition(':')[0]}-{key}")
        for way, model in places
        for key, of in model["properties"].items()
        if "maximum" in of
    ]


@pytest.mark.parametrize(("way", "key", "of"), bounded())
def test_its_bounds_are_those_of_tuner(tmp_path: Path, way: str, key: str, of: dict[str, Any]):
    beside = {
        "time_limit_s": ", requests_total: 20000",
        "threads": ", connections: 1000",
    }
    for bound, step in (("minimum", -1), ("maximum", 1)):
        within, beyond = (
            of[bound],
            of[bound] + step * (1 if of["type"] == "integer" else 1e-3 * of["maximum"]),
        )
        texts = [
            SMALL + way.format(f"{key}: {value}{beside.get(key, '')}") + "\n" for value in (within, beyond)
        ]
        assert [not faults(text) for text in texts] == [True, False], texts
        assert not is_read(tmp_path, texts[1]), texts[1]
        # What has a bound by another key as well is read with one that allows it.
        if (key, bound) not in {("requests_total", "minimum"), ("weight", "minimum")}:
            assert is_read(tmp_path, texts[0]), texts[0]
