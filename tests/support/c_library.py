"""libswathe for the tests: built once per run, called through ctypes, linked by programs in C."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "crates" / "capi"
EXAMPLES = ROOT / "examples"


class Range(ctypes.Structure):
    """`struct sw_range`."""

    offset: int
    buffer: Any
    length: int
    result: int
    _fields_ = (
        ("offset", ctypes.c_int64),
        ("buffer", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("result", ctypes.c_ssize_t),
    )


class Stat(ctypes.Structure):
    """`struct sw_stat`."""

    size: int
    is_local: int
    version: bytes
    _fields_ = (
        ("size", ctypes.c_int64),
        ("is_local", ctypes.c_int),
        ("version", ctypes.c_char * 128),
    )


class Image(ctypes.Structure):
    """`struct sw_image`."""

    bitpix: int
    axes: int
    start: Any
    shape: Any
    bytes: int
    bzero: float
    bscale: float
    _fields_ = (
        ("bitpix", ctypes.c_int),
        ("axes", ctypes.c_int),
        ("start", ctypes.c_int64 * 8),
        ("shape", ctypes.c_int64 * 8),
        ("bytes", ctypes.c_int64),
        ("bzero", ctypes.c_double),
        ("bscale", ctypes.c_double),
    )


@dataclass
class CallError(Exception):
    """A call that returned -1."""

    errno: int
    text: str


class Library:
    """The calls of libswathe as methods: -1 is raised as a `CallError`.

    `read` and `pread` return bytes; the others what the call returns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.raw = ctypes.CDLL(str(path), use_errno=True)
        size, offset, number = ctypes.c_size_t, ctypes.c_int64, ctypes.c_int
        text, memory = ctypes.c_char_p, ctypes.c_void_p
        box = ctypes.POINTER(ctypes.c_int64)
        kinds: dict[str, tuple[Any, tuple[Any, ...]]] = {
            "open": (number, (text, number)),
            "read": (ctypes.c_ssize_t, (number, memory, size)),
            "pread": (ctypes.c_ssize_t, (number, memory, size, offset)),
            "preadv": (ctypes.c_ssize_t, (number, ctypes.POINTER(Range), number)),
            "write": (ctypes.c_ssize_t, (number, text, size)),
            "lseek": (ctypes.c_int64, (number, offset, number)),
            "alloc": (number, (number, offset)),
            "stat": (number, (text, ctypes.POINTER(Stat))),
            "close": (number, (number,)),
            "cut": (number, (number, text, box, number, text)),
            "cut_pixels": (
                ctypes.c_ssize_t,
                (number, text, box, number, ctypes.POINTER(Image), memory, size),
            ),
            "trace_open": (number, (text, text)),
            "trace_event": (number, (text, text)),
            "trace_close": (number, ()),
            "error": (text, ()),
            "version": (text, ()),
        }
        for name, (result, arguments) in kinds.items():
            function = getattr(self.raw, f"sw_{name}")
            function.restype, function.argtypes = result, arguments

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function; paths and text become bytes."""
        plain = [os.fsencode(each) if isinstance(each, (str, Path)) else each for each in arguments]
        result: int = getattr(self.raw, f"sw_{name}")(*plain)
        if result == -1:
            raise CallError(ctypes.get_errno(), self.raw.sw_error().decode())
        return result

    def open(self, name: str | Path, flags: int = os.O_RDONLY) -> int:
        """Open an object."""
        return self.call("open", name, flags)

    def close(self, handle: int) -> None:
        """Close a handle."""
        self.call("close", handle)

    def read(self, handle: int, length: int) -> bytes:
        """Read on."""
        buffer = ctypes.create_string_buffer(length)
        count = self.call("read", handle, buffer, length)
        return buffer.raw[:count]

    def pread(self, handle: int, length: int, offset: int) -> bytes:
        """Read at an offset."""
        buffer = ctypes.create_string_buffer(length)
        count = self.call("pread", handle, buffer, length, offset)
        return buffer.raw[:count]

    def write(self, handle: int, content: bytes) -> int:
        """Append bytes."""
        return self.call("write", handle, content, len(content))

    def put(self, name: str | Path, content: bytes, flags: int = os.O_CREAT | os.O_TRUNC) -> None:
        """Write an object."""
        handle = self.open(name, os.O_WRONLY | flags)
        self.write(handle, content)
        self.close(handle)


@functools.cache
def built_files() -> tuple[Path, Path]:
    """The shared and the static library, built once per run."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo, which builds libswathe, is not installed")
    command = [cargo, "build", "--release", "--quiet", "-p", "swathe-capi"]
    command += ["--message-format", "json"]
    build = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in build.stdout.splitlines()]
    files = [Path(name) for message in messages for name in message.get("filenames", ())]
    (shared,) = (path for path in files if path.name == "libswathe.so")
    (static,) = (path for path in files if path.name == "libswathe.a")
    return shared, static


def library() -> Library:
    """The shared library, loaded."""
    return Library(built_files()[0])


def compiler() -> str:
    """The C compiler."""
    program = shutil.which("cc")
    if program is None:
        pytest.skip("cc is not installed")
    return program


def compile_program(source: Path, folder: Path, *more: str) -> Path:
    """Compile a program in C that finds the shared library where it was built."""
    shared, _ = built_files()
    program = folder / source.stem
    # The name by which programs look for it at run time.
    link = folder / "libswathe.so.0"
    if not link.exists():
        link.symlink_to(shared)
    command = [compiler(), "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-D_GNU_SOURCE"]
    command += [f"-I{CRATE / 'include'}", str(source), "-o", str(program), "-pthread", *more]
    command += [str(link), f"-Wl,-rpath,{folder}"]
    subprocess.run(command, check=True)
    return program
