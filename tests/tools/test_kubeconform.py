"""kubeconform, which `make tools` builds, judges the manifests by the schemas that `make setup` unpacks."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.integration.exported import consumer, write_format
from tests.integration.test_export_consumers import deployment

pytestmark = pytest.mark.tools

DEFINITIONS = "_definitions.json"


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Schemas that contain what they refer to: kubeconform would ask the network for it."""
    folder = tmp_path_factory.mktemp("schemas")
    texts = {path.name: path.read_text() for path in consumer("kubernetes").iterdir()}
    whole = {name: json.loads(text.replace(f"/api/{DEFINITIONS}#", "#")) for name, text in texts.items()}
    for name, schema in whole.items():
        schema.pop("$id")
        (folder / name).write_text(json.dumps({**schema, "$defs": whole[DEFINITIONS]["$defs"]}))
    return folder


def judge(path: Path, schemas: Path) -> "subprocess.CompletedProcess[str]":
    """Judge a file; unknown and repeated keys count as errors."""
    place = f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    argv = ("kubeconform", "-strict", "-summary", "-schema-location", place, str(path))
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_it_accepts_the_config_map_and_the_patched_workload(schemas: Path, tmp_path: Path) -> None:
    files = write_format("kubernetes", tmp_path)
    pod = yaml.safe_load(files["tuner-kubernetes/patch.yaml"])["spec"]["template"]["spec"]
    workload = tmp_path / "deployment.yaml"
    workload.write_text(yaml.safe_dump(deployment(pod)))

    for path in (tmp_path / "tuner-kubernetes/configmap.yaml", workload):
        judged = judge(path, schemas)
        assert "Valid: 1, Invalid: 0, Errors: 0, Skipped: 0" in judged.stdout, judged
        assert judged.returncode == 0


def test_it_refuses_a_key_that_there_is_not(schemas: Path, tmp_path: Path) -> None:
    files = write_format("kubernetes", tmp_path)
    path = tmp_path / "configmap.yaml"
    path.write_bytes(files["tuner-kubernetes/configmap.yaml"] + b"datas: {}\n")

    judged = judge(path, schemas)

    assert "Valid: 0, Invalid: 1" in judged.stdout, judged
