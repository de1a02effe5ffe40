"""A ConfigMap with the files of the servers, and patches that give it to a workload or take it away.

Where a file is not for everybody to read it is a Secret instead.

The patches are strategic merge patches, as `kubectl patch` takes them by default. Which of the kernel's
settings a kubelet lets a pod have, and which only a node can be given, stands in the head.
"""

import base64
import hashlib
import re
from pathlib import PurePosixPath
from typing import Any

from tuner.export.formats.containers import (
    SAFE,
    ContainerSettings,
    describe_node,
    image_files,
    split_settings,
)
from tuner.export.formats.yaml_documents import dump_yaml
from tuner.export.host_change import FileChange, HostChange, describe_change
from tuner.report.summary import Summary

FOLDER = "tuner-kubernetes"
NAME = "tuner"
REMOVE = {"$patch": "delete"}
MOST_KEY = 200
"""Characters of a key; 253 are allowed."""


def write_kubernetes(summary: Summary, change: HostChange) -> dict[str, bytes]:
    """Write the ConfigMap, the patch of a Deployment, and the patch that takes it back."""
    settings, files = split_settings(change), image_files(change)
    holder = f"{_kind(files).lower()}.yaml"
    made = f"kubectl apply -f {FOLDER}/{holder} && " if files else ""
    unmade = f" && kubectl delete -f {FOLDER}/{holder}" if files else ""
    head = describe_change(
        summary,
        change,
        f"apply: {made}kubectl patch deployment NAME --patch-file {FOLDER}/patch.yaml",
        f"undo:  kubectl patch deployment NAME --patch-file {FOLDER}/undo.yaml{unmade}",
        *(
            ["the patches name containers after the servers; replace these names by yours in both"]
            if files
            else []
        ),
        *_describe_safety(settings),
        *describe_node(settings),
    )
    documents = {"patch.yaml": _patch(settings, files), "undo.yaml": _undo(settings, files)}
    if files:
        documents[holder] = _hold(files)
    return {
        f"{FOLDER}/{name}": f"{head}---\n{dump_yaml(document)}".encode()
        for name, document in documents.items()
    }


def _describe_safety(settings: ContainerSettings) -> list[str]:
    """Return lines about what a kubelet has to allow."""
    lines = [
        f"safe: {each.key}" + (f" (since Kubernetes {SAFE[each.key]})" if SAFE[each.key] else "")
        for each in settings.safe
    ]
    if settings.unsafe:
        keys = ",".join(each.key for each in settings.unsafe)
        lines += [f"unsafe: {each.key}" for each in settings.unsafe]
        lines.append(f"for unsafe keys, nodes need: kubelet --allowed-unsafe-sysctls={keys}")
    return lines


def _kind(files: tuple[FileChange, ...]) -> str:
    return "Secret" if any(each.is_private for each in files) else "ConfigMap"


def _name(files: tuple[FileChange, ...]) -> str:
    """Return a name that changes with the content, so that pods restart when it does."""
    told = "".join(f"{each.path}\0{each.mode}\0{(each.after or b'').hex()}\0" for each in files)
    return f"{NAME}-{hashlib.sha256(told.encode()).hexdigest()[:10]}"


def _hold(files: tuple[FileChange, ...]) -> dict[str, Any]:
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    keys = _keys(files)
    for file in files:
        content = file.after or b""
        try:
            texts[keys[file.path]] = content.decode()
        except UnicodeDecodeError:
            others[keys[file.path]] = base64.b64encode(content).decode()
    kind = _kind(files)
    of_texts, of_others = ("stringData", "data") if kind == "Secret" else ("data", "binaryData")
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": _name(files), "labels": {"app.kubernetes.io/managed-by": NAME}},
        **({of_texts: texts} if texts else {}),
        **({of_others: others} if others else {}),
    }


def _volume(files: tuple[FileChange, ...]) -> dict[str, Any]:
    keys = _keys(files)
    items = [{"key": keys[each.path], "path": keys[each.path], "mode": each.mode} for each in files]
    if _kind(files) == "Secret":
        return {"name": NAME, "secret": {"secretName": _name(files), "items": items}}
    return {"name": NAME, "configMap": {"name": _name(files)}}


def _patch(settings: ContainerSettings, files: tuple[FileChange, ...]) -> dict[str, Any]:
    sysctls = [{"name": each.key, "value": each.after} for each in settings.of_pod]
    pod: dict[str, Any] = {"securityContext": {"sysctls": sysctls}} if sysctls else {}
    if files:
        keys = _keys(files)
        mounts = {
            str(each.path): {
                "name": NAME,
                "mountPath": str(each.path),
                "subPath": keys[each.path],
                "readOnly": True,
            }
            for each in files
        }
        pod["containers"] = _containers(files, mounts)
        pod["volumes"] = [_volume(files)]
    return _workload(pod)


def _undo(settings: ContainerSettings, files: tuple[FileChange, ...]) -> dict[str, Any]:
    """Return the patch that takes the other one back; keys of a pod's kernel cannot be told apart in one."""
    pod: dict[str, Any] = {"securityContext": {"sysctls": None}} if settings.of_pod else {}
    if files:
        mounts = {str(each.path): {"mountPath": str(each.path), **REMOVE} for each in files}
        pod["containers"] = _containers(files, mounts)
        pod["volumes"] = [{"name": NAME, **REMOVE}]
    return _workload(pod)


def _containers(files: tuple[FileChange, ...], mounts: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    servers = dict.fromkeys(each.server for each in files)
    return [
        {"name": server, "volumeMounts": [mounts[str(each.path)] for each in files if each.server == server]}
        for server in servers
    ]


def _workload(pod: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": pod}}}


def _keys(files: tuple[FileChange, ...]) -> dict[PurePosixPath, str]:
    """Return the name of each file among the keys of a ConfigMap, which know no folders and no blanks."""
    keys: dict[PurePosixPath, str] = {}
    for file in files:
        key = re.sub(r"[^-._A-Za-z0-9]", "_", str(file.path).strip("/").replace("/", "."))[-MOST_KEY:]
        while key in keys.values():
            key += "_"
        keys[file.path] = key
    return keys
