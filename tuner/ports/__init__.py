"""The three ports of tuner, Host, Server and LoadGenerator, and the data they exchange.

An adapter is a pure function wrapped in facts about one program: it turns a configuration into file
contents and names commands. All effects happen once, in the core, through a Host.
"""

from tuner.ports.host import (
    ABSENT,
    Argv,
    Clock,
    Command,
    Completed,
    CpuSet,
    FileReader,
    Files,
    FileState,
    Host,
    Lookable,
    Process,
    Sandbox,
)
from tuner.ports.load import (
    FAILURE_KINDS,
    ConnectTime,
    Failures,
    Latency,
    LoadGenerator,
    LoadResult,
    Workload,
)
from tuner.ports.server import (
    Config,
    DropIn,
    Facts,
    Installation,
    InstalledServer,
    Needs,
    PrivateServer,
    Scalar,
    Server,
    Service,
    Site,
)

__all__ = [
    "ABSENT",
    "FAILURE_KINDS",
    "Argv",
    "Clock",
    "Command",
    "Completed",
    "Config",
    "ConnectTime",
    "CpuSet",
    "DropIn",
    "Facts",
    "Failures",
    "FileReader",
    "FileState",
    "Files",
    "Host",
    "Installation",
    "InstalledServer",
    "Latency",
    "LoadGenerator",
    "LoadResult",
    "Lookable",
    "Needs",
    "PrivateServer",
    "Process",
    "Sandbox",
    "Scalar",
    "Server",
    "Service",
    "Site",
    "Workload",
]
