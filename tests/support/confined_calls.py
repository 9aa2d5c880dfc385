"""What the tests of confined calls have run."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from swathe.core.errors import TargetsError


def repeat(text: str, times: int) -> bytes:
    return text.encode() * times


def spin() -> bytes:
    while True:
        pass


def sleep(note: str) -> bytes:
    """Begin another process too, and write down both."""
    other = subprocess.Popen(["sleep", "600"])
    Path(note).write_text(f"{os.getpid()} {other.pid}")
    time.sleep(600)
    return b""


def die() -> bytes:
    os.kill(os.getpid(), 9)
    return b""


def refuse() -> bytes:
    raise TargetsError("row 3: no table")


def blunder() -> bytes:
    raise ZeroDivisionError("of ours")


def write(path: str, length: int) -> bytes:
    Path(path).write_bytes(bytes(length))
    return b""


def look() -> bytes:
    """Give what is open beyond the standard streams, and the names of variables."""
    numbers = [name for name in os.listdir("/proc/self/fd") if int(name) > 2]
    return f"{len(numbers)} {' '.join(sorted(os.environ))}".encode()


def niceness() -> bytes:
    return str(os.nice(0)).encode()


def describe(reader: str, path: str) -> bytes:
    """Make the chunk index of a file."""
    module = import_module(f"swathe.arrays.readers.{reader}")
    with Path(path).open("rb") as file:
        index: bytes = module.describe(file)
    return index


def checksum(file: BinaryIO, offset: int, length: int) -> bytes:
    """Read a part of a file, in small and large steps."""
    file.seek(offset)
    content = file.read(10) + file.read(length - 10)
    return hashlib.sha256(content).digest()


def read_past_limits(file: Any) -> bytes:
    """Ask for more than a request may."""
    return bytes(file._ask(0, 17 << 20))


def crash(file: BinaryIO) -> bytes:
    file.read(1)
    os.kill(os.getpid(), signal.SIGSEGV)
    return b""


def leave(file: BinaryIO) -> bytes:
    os._exit(0)


def open_passwords(file: BinaryIO) -> bytes:
    return Path("/etc/passwd").read_bytes()


def spin_with(file: BinaryIO) -> bytes:
    return spin()


def first_byte(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1)
