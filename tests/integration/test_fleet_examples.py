"""The examples of workers in a cluster and in a composition, judged by what is published of their formats."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.integration.exported import validate_compose, validate_kubernetes

EXAMPLES = Path(__file__).parents[2] / "docs/examples/fleet"


def test_kubernetes_accepts_the_job_of_workers() -> None:
    job = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text())
    (worker,) = job["spec"]["template"]["spec"]["containers"]
    hosts = worker["args"][0].partition("hosts=(")[2].partition(")")[0].split()

    validate_kubernetes(job, "job-batch-v1")
    assert job["spec"]["completions"] == len(set(hosts))
    with pytest.raises(jsonschema.ValidationError):
        validate_kubernetes({**job, "spec": {**job["spec"], "completions": "three"}}, "job-batch-v1")


def test_compose_accepts_the_scheduler_and_its_workers() -> None:
    composition = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())

    validate_compose(composition)
    composition["services"]["web1"]["stop_grace_period"] = 2
    with pytest.raises(jsonschema.ValidationError, match="2 is not of type 'string'"):
        validate_compose(composition)
