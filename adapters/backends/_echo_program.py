"""Echo WebSocket messages on a port of 127.0.0.1: `python -I _echo_program.py PORT`."""

import asyncio
import sys
from contextlib import suppress
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

BACKLOG = 4096
"""As many clients as may come at once."""


async def echo(connection: ServerConnection) -> None:
    """Send back what comes, until the client is gone."""
    with suppress(ConnectionClosed):
        async for message in connection:
            await connection.send(message)


def answer_plainly(connection: ServerConnection, request: Request) -> Response | None:
    """Answer a request that wants no WebSocket: so it is seen from outside that the application is ready."""
    if "Upgrade" in request.headers:
        return None
    return connection.respond(HTTPStatus.OK, "echoes WebSocket messages\n")


async def serve_on(port: int) -> None:
    """Serve until the process is ended.

    Neither compression nor pings: they would add work and messages that nobody counts.
    """
    async with serve(
        echo, "127.0.0.1", port, process_request=answer_plainly, compression=None, ping_interval=None,
        backlog=BACKLOG,
    ) as server:  # fmt: skip
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve_on(int(sys.argv[1])))
