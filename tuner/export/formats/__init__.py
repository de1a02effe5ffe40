"""Formats that know no server: each writes what a winner changes on a host, with an undo.

To add one, write a module with a function like the others, and list it in FORMATS.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tuner.export.formats.ansible import write_ansible
from tuner.export.formats.cloud_init import write_cloud_init
from tuner.export.formats.dockerfile import write_dockerfile
from tuner.export.formats.kubernetes import write_kubernetes
from tuner.export.formats.markdown import write_markdown
from tuner.export.formats.shell import write_shell
from tuner.export.formats.tuned import write_tuned
from tuner.export.host_change import HostChange
from tuner.report.summary import Summary

FORMATS: Mapping[str, Callable[[Summary, HostChange], dict[str, bytes]]] = MappingProxyType(
    {
        "shell": write_shell,
        "ansible": write_ansible,
        "tuned": write_tuned,
        "cloud-init": write_cloud_init,
        "dockerfile": write_dockerfile,
        "kubernetes": write_kubernetes,
        "markdown": write_markdown,
    }
)
"""Name → what returns file name, which may lie in a folder, → content."""
