"""The example of workers in a cluster, judged by what Kubernetes publishes."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.integration.exported import validate_kubernetes

JOB = Path(__file__).parents[2] / "docs/examples/fleet/kubernetes.yaml"


def test_kubernetes_accepts_the_job_of_workers() -> None:
    job = yaml.safe_load(JOB.read_text())
    (worker,) = job["spec"]["template"]["spec"]["containers"]
    hosts = worker["args"][0].partition("hosts=(")[2].partition(")")[0].split()

    validate_kubernetes(job, "job-batch-v1")
    assert job["spec"]["completions"] == len(set(hosts))
    with pytest.raises(jsonschema.ValidationError):
        validate_kubernetes({**job, "spec": {**job["spec"], "completions": "three"}}, "job-batch-v1")
