"""A slow or lossy cable between two TAP devices: every frame waits its time, and some are lost.

Run as `python -I -S link.py NEAR FAR` in the network namespace of the devices that it makes. It says `ready`,
then takes lines `DELAY_S LOSS` (one way; share of frames) until its input ends, and the devices with it.
"""

import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import sys
import time

# linux/if_tun.h
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES = 2**16


def open_tap(name: str) -> int:
    """Make a TAP device that lives as long as the descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return descriptor


def forward(near: int, far: int) -> None:
    """Carry frames both ways until the input ends."""
    other = {near: far, far: near}
    delay_s, loss = 0.0, 0.0
    order = itertools.count()
    waiting: list[tuple[float, int, int, bytes]] = []
    while True:
        timeout_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        # Not poll(2): it counts in whole milliseconds.
        readable, _, _ = select.select([0, near, far], [], [], timeout_s)
        for descriptor in readable:
            if descriptor == 0:
                line = os.read(0, FRAME_BYTES)
                if not line:
                    return
                delay_s, loss = (float(word) for word in line.splitlines()[-1].split())
                continue
            for frame in frames_of(descriptor):
                if random.random() >= loss:  # noqa: S311 - no secret
                    due_s = time.monotonic() + delay_s
                    heapq.heappush(waiting, (due_s, next(order), other[descriptor], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, descriptor, frame = heapq.heappop(waiting)
            send(descriptor, frame)


def frames_of(descriptor: int) -> list[bytes]:
    """Read what has arrived."""
    frames = []
    try:
        while True:
            frames.append(os.read(descriptor, FRAME_BYTES))
    except BlockingIOError:
        return frames
    except OSError:
        # The device is down.
        return frames


def send(descriptor: int, frame: bytes) -> None:
    """Hand on a frame; one that finds the device down or full is lost, as on any cable."""
    try:
        os.write(descriptor, frame)
    except OSError:
        return


if __name__ == "__main__":
    ends = [open_tap(name) for name in sys.argv[1:3]]
    os.write(1, b"ready\n")
    forward(*ends)
