"""Kernel statistics of TCP: retransmitted segments, and round trips of established connections."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

SNMP = Path("/proc/net/snmp")

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, linux/tcp.h
SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
REQUEST_DUMP = 0x1 | 0x300
DONE, ERROR = 3, 2
INFO = 2
ESTABLISHED_STATE = 1
MESSAGE = struct.Struct("=IHHII")
DIAG_BYTES = 72
RTT_AT = 68
TIMEOUT_S = 2.0
MOST_BYTES = 1 << 18


def retransmits() -> int:
    """Return the number of retransmitted segments since boot.

    Raises:
        OSError: If the kernel does not provide it.
    """
    titles, values = (row.split() for row in SNMP.read_text().splitlines() if row[:4] == "Tcp:")
    return int(values[titles.index("RetransSegs")])


def round_trips() -> list[float]:
    """Return the smoothed round trip time of each established connection, seconds.

    Raises:
        OSError: If the kernel does not provide it.
    """
    seconds: list[float] = []
    for family in (socket.AF_INET, socket.AF_INET6):
        seconds += _of_family(family)
    return seconds


def _of_family(family: int) -> list[float]:
    if not hasattr(socket, "AF_NETLINK"):
        raise OSError("expected sock_diag, which this system lacks")
    request = struct.pack(
        "=BBBxI48x", family, socket.IPPROTO_TCP, 1 << (INFO - 1), 1 << ESTABLISHED_STATE
    )
    head = MESSAGE.pack(MESSAGE.size + len(request), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0)
    seconds: list[float] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, SOCK_DIAG) as kernel:
        kernel.settimeout(TIMEOUT_S)
        kernel.sendto(head + request, (0, 0))
        while True:
            answer = kernel.recv(MOST_BYTES)
            if not _read(answer, seconds):
                return seconds


def _read(answer: bytes, rtts_s: list[float]) -> bool:
    """Parse the messages of an answer; return whether more follow."""
    at = 0
    while at + MESSAGE.size <= len(answer):
        size, kind, *_ = MESSAGE.unpack_from(answer, at)
        body = answer[at + MESSAGE.size : at + size]
        if kind == DONE or size < MESSAGE.size:
            return False
        if kind == ERROR:
            number = -struct.unpack_from("=i", body)[0]
            raise OSError(number, "the kernel does not list connections")
        rtt_s = _rtt_s(body)
        if rtt_s is not None:
            rtts_s.append(rtt_s)
        at += (size + 3) & ~3
    return True


def _rtt_s(body: bytes) -> float | None:
    """Parse the attributes that follow the common part of a connection."""
    at = DIAG_BYTES
    while at + 4 <= len(body):
        size, kind = struct.unpack_from("=HH", body, at)
        if kind == INFO and size >= 4 + RTT_AT + 4:
            return float(struct.unpack_from("=I", body, at + 4 + RTT_AT)[0]) / 1e6
        at += max((size + 3) & ~3, 4)
    return None
