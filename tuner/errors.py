"""Every error that tuner raises on purpose.

TunerError
├── UsageError          study file, space, unknown adapter                       exit 2
├── TargetError         not permitted, missing program                           exit 3
│   ├── Unreachable     there is no connection to it, or none any more
│   └── TooNoisy        other programs spoil what is measured; the study can be resumed
├── TrialFailed         the run goes on; class and reason are stored
│   ├── ConfigRejected  the server's own check refused the configuration
│   ├── NotReady        it was started and did not answer in time
│   ├── NotEffective    what is active is not what was asked
│   ├── Crashed         it ended by itself
│   ├── Stalled         it stopped answering under load
│   └── LoadFailed      the load generator failed or printed what cannot be read
└── RestoreFailed       originals could not be put back                          exit 4
    └── HostLost        the host could not be asked; it puts them back itself    exit 3

Wording: *where: what is wrong, with the value. What to do.*
"""

from typing import ClassVar


class TunerError(Exception):
    """Base of all errors that are shown to the user as one clear message."""

    exit_code: ClassVar[int] = 3


class UsageError(TunerError):
    """The study file, a space or an argument is wrong."""

    exit_code = 2


class TargetError(TunerError):
    """The target cannot be used: a program is missing, a right is lacking, a port is taken."""

    exit_code = 3


class Unreachable(TargetError):
    """There is no connection to the target, or none any more."""


class TooNoisy(TargetError):
    """Other programs on the host spoil what is measured."""


class TrialFailed(TunerError):
    """One configuration failed; the study learns from it and goes on."""

    kind: ClassVar[str] = "failed"


class ConfigRejected(TrialFailed):
    """The server's own check refused the configuration."""

    kind = "rejected"


class NotReady(TrialFailed):
    """The server was started and did not answer correctly in time."""

    kind = "not ready"


class NotEffective(TrialFailed):
    """What is active differs from what was asked."""

    kind = "not effective"


class Crashed(TrialFailed):
    """The server ended by itself."""

    kind = "crashed"


class Stalled(TrialFailed):
    """The server stopped answering under load."""

    kind = "stalled"


class LoadFailed(TrialFailed):
    """The load generator failed, or its output cannot be understood."""

    kind = "load failed"


class RestoreFailed(TunerError):
    """An original could not be put back."""

    exit_code = 4


class HostLost(RestoreFailed):
    """The target could not be asked to put its originals back: it does that by itself."""

    exit_code = 3
