"""Formats that know no server: each writes what a winner changes on a host, with an undo.

To add one, write a module with a function as `Format.write` has it, and list it in FORMATS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from tuner.export.formats.ansible import write_ansible
from tuner.export.formats.cloud_init import write_cloud_init
from tuner.export.formats.dockerfile import write_dockerfile
from tuner.export.formats.kubernetes import write_kubernetes
from tuner.export.formats.markdown import write_markdown
from tuner.export.formats.shell import write_shell
from tuner.export.formats.tuned import write_tuned
from tuner.export.host_change import HostChange

if TYPE_CHECKING:
    from tuner.report.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to hand a winner over."""

    write: "Callable[[Summary, HostChange], dict[str, bytes]]"
    """Returns file name → content; names may lie in a folder."""
    summary: str
    """For whom it is, in a few words."""


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "shell": Format(write=write_shell, summary="two scripts for a host, apply.sh and undo.sh"),
        "ansible": Format(write=write_ansible, summary="playbooks to apply and to undo, with their role"),
        "tuned": Format(write=write_tuned, summary="a profile of TuneD"),
        "cloud-init": Format(write=write_cloud_init, summary="user data for new machines"),
        "dockerfile": Format(write=write_dockerfile, summary="lines for a Dockerfile, with their files"),
        "kubernetes": Format(write=write_kubernetes, summary="a ConfigMap, and a patch for a workload"),
        "markdown": Format(write=write_markdown, summary="the text of a pull request"),
    }
)
