"""A role for Ansible with two playbooks: one puts a winner on hosts, the other takes it back.

The role is the same for every winner; what is changed stands in its vars and files. It needs no collection
besides ansible.builtin, and no right besides `become`.
"""

from importlib import resources
from pathlib import PurePosixPath
from textwrap import wrap
from typing import Any

from tuner.deploy.systemd_limits import UNITS
from tuner.export.formats.shell import find_mark
from tuner.export.formats.yaml_documents import Unsafe, dump_yaml
from tuner.export.host_change import FileChange, HostChange, describe_change
from tuner.export.provenance import write_head
from tuner.report.summary import Summary

FOLDER = "tuner-ansible"
ROLE = f"{FOLDER}/roles/tuner"
APPLY, UNDO = "apply", "undo"
WIDTH = 160
"""Of a line, as ansible-lint allows it by default."""


def write_ansible(summary: Summary, change: HostChange) -> dict[str, bytes]:
    """Write both playbooks, and the role with the files of both ways."""
    whole = change.with_boot_files(write_head(summary))
    head = describe_change(
        summary,
        change,
        f"apply: ansible-playbook -i INVENTORY {APPLY}.yml (try it first with --check --diff)",
        f"undo:  ansible-playbook -i INVENTORY {UNDO}.yml",
    )
    files: dict[str, bytes] = {}
    for way, each in ((APPLY, whole), (UNDO, whole.reversed())):
        files[f"{FOLDER}/{way}.yml"] = _write(head, [_describe_play(way)])
        files[f"{ROLE}/vars/{way}.yml"] = _write(head, _describe_change(each, way))
        files |= {
            f"{ROLE}/files/{_source(file, way)}": file.after for file in each.files if file.after is not None
        }
    tasks = resources.files("tuner.export.formats") / "role" / "tasks.yml"
    return {**files, f"{ROLE}/tasks/main.yml": b"---\n" + tasks.read_bytes()}


def _write(head: str, document: Any) -> bytes:  # noqa: ANN401 - whatever YAML holds
    return f"{_fold(head)}---\n{dump_yaml(document)}".encode()


def _fold(comments: str) -> str:
    """Break the lines of a comment that are too long."""
    return "".join(
        f"{part}\n"
        for line in comments.splitlines()
        for part in wrap(
            line, WIDTH, subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
        )
    )


def _describe_play(way: str) -> dict[str, Any]:
    return {
        "name": "Apply the settings that tuner found"
        if way == APPLY
        else "Undo the settings that tuner found",
        "hosts": "all",
        "become": True,
        # A host on which it fails ends the play before the others are touched.
        "serial": "{{ tuner_serial | default(1) }}",
        # Which program starts services is all that is asked.
        "gather_subset": ["min"],
        "roles": [{"role": "tuner", "tuner_change": way}],
    }


def _describe_change(change: HostChange, way: str) -> dict[str, Any]:
    return {
        "tuner_files": [_describe_file(each, way) for each in change.files],
        "tuner_settings": [
            {"path": _raw(each.path), "before": _raw(each.before), "after": _raw(each.after)}
            for each in change.settings
        ],
        "tuner_services": [
            {
                "name": _raw(each.name),
                "state": "reloaded" if each.may_reload else "restarted",
                "check": [_raw(word) for word in each.check or ()],
            }
            for each in change.services
        ],
        "tuner_touches_units": change.touches_units,
        "tuner_mark": str(find_mark(change)),
    }


def _describe_file(file: FileChange, way: str) -> dict[str, Any]:
    before, after = file.sums
    other = UNDO if way == APPLY else APPLY
    return {
        "path": _raw(file.path),
        "before": before,
        "after": after,
        "source": "" if file.after is None else _raw(_source(file, way)),
        "undo_source": "" if file.before is None else _raw(_source(file, other)),
        "makes_directory": file.path.is_relative_to(UNITS),
    }


def _source(file: FileChange, way: str) -> str:
    return f"{way}/{file.path.relative_to(PurePosixPath('/'))}"


def _raw(text: object) -> str:
    """Return a text of a host as one that is no template: those are evaluated where the playbook runs."""
    return Unsafe(text) if "{" in str(text) else str(text)
