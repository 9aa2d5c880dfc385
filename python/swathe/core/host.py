"""The machine that Swathe runs on: its name, its cores, its addresses."""

from __future__ import annotations

import ipaddress
import os
import platform


def cores() -> int:
    """Give the number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def this_host() -> str:
    """Give the name of this machine, as measurements are filed under it."""
    return platform.node() or "localhost"


def in_url(host: str) -> str:
    """Give a host as URLs have it: addresses of IP version 6 in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
