"""What is exported for other tools, judged by those tools: nothing is applied here."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.integration.exported import (
    LIMITS,
    MAIN,
    SITE,
    UNIT,
    changed,
    consumer,
    put,
    run,
    run_python,
    validate_kubernetes,
    write_format,
)
from tests.unit.simulated_study import make_summary
from tuner.errors import UsageError
from tuner.export import export
from tuner.export.formats import FORMATS

COMMAND = "ansible.builtin.command"
LONG = " ".join(["nginx: the gain may be another one here."] * 9)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_where_it_comes_from_what_each_setting_gives_and_how_it_is_undone(
    form: str, tmp_path: Path
) -> None:
    files = write_format(form, tmp_path)
    explained = make_summary(searches=4).explanation
    assert explained is not None

    first = next(content.decode(errors="replace") for content in files.values() if b"found by" in content)
    for words in ("nginx-static", "web1", "nginx 1.22.1", "wrk 4.1.0", "6 pairs", "it is not compiled in"):
        assert words in first.replace("\\", "")
    assert len(explained.settings) > 2
    assert all(setting.parameter in first.replace("\\", "") for setting in explained.settings)
    assert first.count("×") > len(explained.settings)
    assert re.search("(?i)undo|way back", first)


def test_the_scripts_are_what_shells_and_shellcheck_accept(tmp_path: Path) -> None:
    write_format("shell", tmp_path)
    write_format("tuned", tmp_path)
    scripts = [str(path) for path in sorted(tmp_path.rglob("*.sh"))]

    assert len(scripts) == 5
    for script in scripts:
        run("bash", "-n", script)
        run("dash", "-n", script)
    # The functions of the file are called below them, some in one of the two scripts alone.
    run("shellcheck", "--severity=style", *scripts)


def test_the_playbooks_are_what_ansible_reads(tmp_path: Path) -> None:
    write_format("ansible", tmp_path)
    for playbook in ("apply.yml", "undo.yml"):
        said = run(
            "ansible-playbook", "--syntax-check", "-i", "web1,", playbook, cwd=tmp_path / "tuner-ansible",
            ANSIBLE_HOME=str(tmp_path / ".ansible"), LC_ALL="C.UTF-8",
        )  # fmt: skip
        assert "WARNING" not in said

    role = tmp_path / "tuner-ansible/roles/tuner"
    apply, undo = (yaml.safe_load((role / f"vars/{way}.yml").read_text()) for way in ("apply", "undo"))
    assert (role / f"files/apply{MAIN}").read_bytes() == changed()["nginx"].after[MAIN]
    assert (role / f"files/undo{SITE}").read_bytes() == changed()["nginx"].before[SITE]
    assert {each["path"]: each["after"] for each in apply["tuner_files"]} == {
        each["path"]: each["before"] for each in undo["tuner_files"]
    }


def test_every_condition_of_the_role_is_a_boolean_as_newer_ansibles_demand(tmp_path: Path) -> None:
    write_format("ansible", tmp_path)
    role = tmp_path / "tuner-ansible/roles/tuner"
    (tasks, apply) = (
        yaml.safe_load((role / name).read_text()) for name in ("tasks/main.yml", "vars/apply.yml")
    )
    within = [each for task in tasks for part in ("block", "rescue") for each in task.get(part, ())]
    conditions = [each["when"] for each in (*tasks, *within) if "when" in each]
    flat = [each for one in conditions for each in (one if isinstance(one, list) else [one])]

    assert len(flat) > 4
    # Since ansible-core 2.19 a list is no condition, even one that is not empty.
    compared = re.compile(r" (is|in|==|>) ")
    assert [
        each
        for each in flat
        if not compared.search(each) and {**apply, "tuner_differs": True}.get(each) not in (True, False)
    ] == []


def write_role(folder: Path) -> Path:
    """Write the playbooks of a winner that has much to say, and return their folder."""
    files = changed()
    files["nginx"] = replace(files["nginx"], doubts=(LONG,))
    put(export(make_summary(searches=4), "ansible", rendered=files), folder)
    return folder / "tuner-ansible"


def test_long_lines_of_a_head_are_broken_as_linters_demand(tmp_path: Path) -> None:
    folder = write_role(tmp_path)

    lines = [line for path in folder.rglob("*.yml") for line in path.read_text().splitlines()]
    assert max(map(len, lines)) <= 160
    assert LONG in " ".join((folder / "apply.yml").read_text().replace("#", " ").split())


def test_every_command_of_the_role_says_when_it_changes_something(tmp_path: Path) -> None:
    folder = write_role(tmp_path)
    tasks = yaml.safe_load((folder / "roles/tuner/tasks/main.yml").read_text())
    within = [each for task in tasks for part in ("block", "rescue") for each in task.get(part, ())]
    commands = [each for each in (*tasks, *within) if COMMAND in each]

    assert len(commands) > 4
    assert all("changed_when" in each or "removes" in each[COMMAND] for each in commands)


@pytest.mark.more
def test_ansible_lint_finds_nothing_in_the_role_with_its_strictest_profile(tmp_path: Path) -> None:
    lint = consumer("ansible-lint") / "bin/ansible-lint"
    folder = write_role(tmp_path)

    said = run(
        str(lint), "--offline", "--nocolor", "--strict", "--profile", "production", "apply.yml", "undo.yml",
        cwd=folder, HOME=str(tmp_path), LC_ALL="C.UTF-8",
    )  # fmt: skip

    assert "'production' was required, and it passed" in said
    (read,) = re.findall(r"in (\d+) files processed", said)
    assert int(read) >= len([*folder.rglob("*.yml")])


READ_PROFILE = """
import json, sys
from tuned.profiles.factory import Factory
from tuned.profiles.loader import Loader
from tuned.profiles.locator import Locator
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
from tuned.utils.global_config import GlobalConfig

folder, main = sys.argv[1:]
loader = Loader(Locator([folder]), Factory(), Merger(), GlobalConfig(main), Variables())
profile = loader.load("tuner")
print(json.dumps({name: dict(unit.options) for name, unit in profile.units.items()}))
"""


def test_tuned_reads_the_profile(tmp_path: Path) -> None:
    tuned = consumer("tuned")
    write_format("tuned", tmp_path)

    said = run_python(READ_PROFILE, str(tmp_path), str(tuned / "etc/tuned/tuned-main.conf"), modules=tuned)

    assert json.loads(said.splitlines()[-1]) == {
        "sysctl": {
            "net.core.netdev_max_backlog": "5000", "net.core.somaxconn": "9000",
            "net.ipv4.tcp_wmem": "4096 65536 4194304",
        },
        "sysfs": {"/sys/kernel/mm/transparent_hugepage/enabled": "never"},
        "script": {"script": [str(tmp_path / "tuner/script.sh")]},
    }  # fmt: skip


def test_cloud_init_accepts_the_user_data(tmp_path: Path) -> None:
    (schema,) = consumer("cloud-init").rglob("schema-cloud-config-v1.json")
    validator = jsonschema.Draft4Validator(json.loads(schema.read_text()))

    for content in write_format("cloud-init", tmp_path).values():
        assert content.startswith(b"#cloud-config\n")
        document = yaml.safe_load(content)
        validator.validate(document)
        assert {each["path"] for each in document["write_files"]} >= {str(MAIN), str(SITE)}
        assert document["runcmd"][-1][-2:] == ["nginx", "-t"]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"write_files": [{"content": "without a path"}]})
    # Only the undo takes files away, and a directory of drop-ins that is empty then.
    assert ["rmdir", "--ignore-fail-on-non-empty", str(UNIT.parent)] in document["runcmd"]


def deployment(pod: dict[str, Any]) -> dict[str, Any]:
    """Complete the patch of a Deployment as the cluster would."""
    containers = [{"image": "nginx", **each} for each in pod["containers"]]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod, "containers": containers}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": selector, "template": template},
    }  # fmt: skip


def test_kubernetes_accepts_the_config_map_and_the_patched_workload(tmp_path: Path) -> None:
    files = write_format("kubernetes", tmp_path)
    config_map, patch, undo = (
        yaml.safe_load(files[f"tuner-kubernetes/{name}.yaml"]) for name in ("configmap", "patch", "undo")
    )
    pod = patch["spec"]["template"]["spec"]

    validate_kubernetes(config_map, "configmap-v1")
    validate_kubernetes(deployment(pod), "deployment-apps-v1")
    nameless = [{"configMap": {"name": "tuner"}}]
    with pytest.raises(jsonschema.ValidationError):
        validate_kubernetes(deployment({**pod, "volumes": nameless}), "deployment-apps-v1")

    (container,) = pod["containers"]
    keys = {mount["subPath"] for mount in container["volumeMounts"]}
    assert keys == {*config_map["data"], *config_map["binaryData"]}
    assert str(UNIT) not in {mount["mountPath"] for mount in container["volumeMounts"]}, "no systemd there"
    taken = undo["spec"]["template"]["spec"]
    assert [each["mountPath"] for each in taken["containers"][0]["volumeMounts"]] == [
        each["mountPath"] for each in container["volumeMounts"]
    ]
    assert taken["volumes"] == [{"name": "tuner", "$patch": "delete"}]


def test_a_pod_gets_the_settings_of_its_own_and_the_head_says_which_are_safe(tmp_path: Path) -> None:
    text = write_format("kubernetes", tmp_path)["tuner-kubernetes/patch.yaml"].decode()
    pod = yaml.safe_load(text)["spec"]["template"]["spec"]

    assert pod["securityContext"]["sysctls"] == [
        {"name": "net.ipv4.tcp_wmem", "value": "4096 65536 4194304"},
        {"name": "net.core.somaxconn", "value": "9000"},
    ]
    assert "# safe: net.ipv4.tcp_wmem (since Kubernetes 1.32)\n" in text
    assert "# unsafe: net.core.somaxconn\n" in text
    assert "kubelet --allowed-unsafe-sysctls=net.core.somaxconn\n" in text
    assert "#   net.core.netdev_max_backlog = 5000 (was 1000)\n" in text
    assert "#   /sys/kernel/mm/transparent_hugepage/enabled = never (was always)\n" in text


def test_the_lines_of_the_dockerfile_copy_what_lies_beside_them(tmp_path: Path) -> None:
    files = write_format("dockerfile", tmp_path)
    text = files["tuner-dockerfile/Dockerfile"].decode()
    lines = [line.split(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    copied = [json.loads(rest) for word, rest in lines if word == "COPY"]

    assert {target: (tmp_path / source).read_bytes() for source, target in copied} == {
        str(path): content for path, content in changed()["nginx"].after.items() if path != UNIT
    }
    assert [json.loads(rest) for word, rest in lines if word == "RUN"] == [["nginx", "-t"]]
    (started,) = re.findall(r"(?m)^# start containers with: docker run (.*) IMAGE$", text)
    assert shlex.split(started) == [
        "--sysctl", "net.ipv4.tcp_wmem=4096 65536 4194304", "--sysctl", "net.core.somaxconn=9000",
        "--ulimit", "nofile=65536:65536",
    ]  # fmt: skip


def test_the_page_for_a_pull_request_holds_the_differences_and_the_way_back(tmp_path: Path) -> None:
    text = write_format("markdown", tmp_path)["tuner.md"].decode()

    for line in ("-worker_processes auto;", "+worker_processes 3;", "+LimitNOFILE=65536"):
        assert f"\n{line}\n" in text
    assert "````diff\n--- a/etc/nginx/sites-available/default" in text, "its own fence is longer"
    assert "sysctl -w net.core.somaxconn='4096'" in text
    assert re.search("nginx -t && (systemctl restart nginx|service nginx restart)", text)
    assert text.count("```diff") == 3


def test_systemd_accepts_the_drop_in_of_a_unit(tmp_path: Path) -> None:
    service = tmp_path / "nginx.service"
    service.write_text("[Unit]\nDescription=web\n[Service]\nExecStart=/bin/true\n")
    drop_in = tmp_path / "nginx.service.d/zz-tuner.conf"
    drop_in.parent.mkdir()
    files = write_format("ansible", tmp_path)
    drop_in.write_bytes(files[f"tuner-ansible/roles/tuner/files/apply{UNIT}"])
    assert drop_in.read_bytes() == LIMITS

    assert run("systemd-analyze", "verify", "--man=no", str(service)) == ""
    drop_in.write_text("[Service]\nLimitNOFILES=1\n")
    assert "LimitNOFILES" in run("systemd-analyze", "verify", "--man=no", str(service))


def test_a_winner_that_changes_nothing_installed_is_refused_with_what_can_be_done() -> None:
    with pytest.raises(UsageError, match=r"changes no installed file .* Choose --format json"):
        export(make_summary(searches=4), "shell", rendered={})
