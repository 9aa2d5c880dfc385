"""Restrict this process to reading the files of one folder, by Landlock of Linux (5.13 and later).

References:
    Documentation/userspace-api/landlock.rst of Linux.
"""

from __future__ import annotations

import ctypes
import os
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, the same on all processors."""
ONLY_VERSION = 1
PATH_BENEATH = 1
NO_NEW_PRIVILEGES = 38
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
FILE_RIGHTS = ((1, 13), (2, 14), (3, 15), (5, 16))
"""From a version of Landlock on, how many rights on files it knows."""
BIND_AND_CONNECT, NETWORK_VERSION = 3, 4
"""Rights on TCP, and the version that knows them."""
SIGNALS_AND_SOCKETS, SCOPE_VERSION = 3, 6
"""Signals to others and abstract sockets of theirs, and the version that knows them."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


def landlock_version() -> int:
    """Return the version of Landlock of this system; 0 without it."""
    if sys.platform != "linux":
        return 0
    version = _library().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ONLY_VERSION)
    return max(int(version), 0)


def restrict_to(folder: str) -> None:
    """Let this process open files below a folder for reading, and nothing else; for good.

    Files that are open stay so. Links are followed as far as they stay in the folder.

    Raises:
        OSError: If the system has no Landlock, or the folder cannot be opened.
    """
    version = landlock_version()
    library = _library()
    rights = max((count for least, count in FILE_RIGHTS if version >= least), default=0)
    rules = _Ruleset(
        (1 << rights) - 1,
        BIND_AND_CONNECT if version >= NETWORK_VERSION else 0,
        SIGNALS_AND_SOCKETS if version >= SCOPE_VERSION else 0,
    )
    size = 8 * (1 + (version >= NETWORK_VERSION) + (version >= SCOPE_VERSION))
    ruleset = _result_of(
        library.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    )
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        rule = _Beneath(READ_FILE | READ_FOLDER, place)
        _result_of(library.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0))
        _result_of(library.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _result_of(library.syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(place)
        os.close(ruleset)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _result_of(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
