"""Properties of this machine: its name, its cores, its addresses."""

from __future__ import annotations

import ipaddress
import os
import platform


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


def in_url(host: str) -> str:
    """Return a host as written in a URL: an IPv6 address gets brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Check whether an address can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
