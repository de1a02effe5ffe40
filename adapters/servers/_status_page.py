"""Ask a server's own status page."""

from tuner.adapters.servers._programs import COMMAND_TIMEOUT_S
from tuner.errors import TargetError
from tuner.ports import Argv, Completed, Host


def status_command(port: int, page: str) -> Argv:
    """Name the command that asks for a page of the server on this port, by its path without the slash."""
    return ("curl", "-sS", "--max-time", "5", f"http://127.0.0.1:{port}/{page}")


def ask_status(host: Host, port: int, page: str, *, server: str) -> Completed:
    """Ask for the page. Raises TargetError when there is no curl; what came may be no status."""
    try:
        return host.run(status_command(port, page), timeout_s=COMMAND_TIMEOUT_S)
    except TargetError as error:
        missing = f"{host.name}: curl is needed to read {server}'s status ({error}). apt-get install curl"
        raise TargetError(missing) from error
