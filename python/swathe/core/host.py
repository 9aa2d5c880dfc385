"""Properties of this machine: its name, its cores, its addresses."""

from __future__ import annotations

import ipaddress
import os
import platform
from pathlib import Path


def cores() -> int:
    """Return the number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def crowding() -> float:
    """Return how many times longer computing may take now, since others use the cores, too.

    It is by the load of the last minute; 1 if a core is free.
    """
    return max(1.0, (1 + os.getloadavg()[0]) / cores())


def this_host() -> str:
    """Return the name of this machine, under which measurements are stored."""
    return platform.node() or "localhost"


def has_process(pid: int) -> bool:
    """Check whether this machine has a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def process_space() -> str:
    """Return what tells in which numbers of processes are unique: a boot and a namespace of it.

    Containers may have the name of their host, and processes of the same numbers. Empty where the
    system does not tell.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def process_name() -> str:
    """Return the name of this process, unique among those that run, also of other machines."""
    return f"process {process_space() or this_host()} {os.getpid()}"


def has_ended(name: str) -> bool:
    """Check whether the process of a name has ended; False for one that is not of this machine."""
    place, _, pid = name.rpartition(" ")
    own_place = process_name().rpartition(" ")[0]
    return place == own_place and pid.isdecimal() and not has_process(int(pid))


def in_url(host: str) -> str:
    """Return a host as written in a URL: an IPv6 address gets brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Check whether an address can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
