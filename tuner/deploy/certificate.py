"""The certificate of a private server: made in its sandbox, and gone with it."""

from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.kit.packages import OPENSSL, say_install
from tuner.ports import Argv, Certificate, FileState, Sandbox

PROGRAM = "openssl"
TIMEOUT_S = 10.0
DAYS = 2
"""It is made anew for each trial; one is too little where a clock is set during it."""
# Of our own, so that nothing depends on the one that the host has. No authority: some clients take none as a
# server's certificate. req(1ssl), x509v3_config(5ssl).
_CONFIGURATION = b"""\
[req]
distinguished_name = subject
x509_extensions = extensions
[subject]
[extensions]
basicConstraints = critical, CA:FALSE
subjectAltName = IP:127.0.0.1, DNS:localhost
extendedKeyUsage = serverAuth
"""


def make_certificate(sandbox: Sandbox) -> Certificate:
    """Make a key and a certificate for 127.0.0.1 that vouches for itself.

    The key is on the curve P-256, as most keys of web servers are by now.

    Raises TargetError when there is no openssl, or it cannot make them.
    """
    directory = sandbox.directory / "certificate"
    settings = directory / "openssl.cnf"
    sandbox.write(settings, FileState(content=_CONFIGURATION))
    made = Certificate(file=directory / "certificate.pem", key=directory / "key.pem")
    try:
        completed = sandbox.run(_command(settings, made), timeout_s=TIMEOUT_S)
    except TargetError as error:
        raise TargetError(
            f"{sandbox.name}: {PROGRAM} is needed to make a certificate ({error}). Install it with: "
            f"{say_install(sandbox, OPENSSL)}"
        ) from error
    if completed.returncode != 0:
        lines = [line.strip() for line in completed.stderr.decode(errors="replace").splitlines()]
        said = " / ".join(line for line in lines if line.strip("-+.*")) or "it says nothing"
        raise TargetError(
            f"{sandbox.name}: `{PROGRAM} req` made no certificate (status {completed.returncode}): {said}. "
            f"Update {PROGRAM}."
        )
    return made


def _command(settings: PurePosixPath, made: Certificate) -> Argv:
    return (
        PROGRAM, "req", "-x509", "-config", str(settings), "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(DAYS), "-subj", "/CN=localhost",
        "-keyout", str(made.key), "-out", str(made.file),
    )  # fmt: skip
