"""What every program finds below /dev in a sandbox."""

from tuner.ports import Sandbox

DEVICES = {b"null", b"zero", b"full", b"random", b"urandom", b"shm", b"fd", b"stdin", b"stdout", b"stderr"}


def require_devices(sandbox: Sandbox, say_b: str) -> None:
    """Use the devices, and look that there are no others; `say_b` prints b through one of them."""
    code = f"head -c 8 /dev/urandom | wc -c; echo a >/dev/null; {say_b}; head -c 1 /dev/zero | wc -c"
    assert sandbox.run(["sh", "-c", code], timeout_s=5).stdout == b"8\nb\n1\n"
    assert set(sandbox.run(["ls", "/dev"], timeout_s=5).stdout.split()) == DEVICES
