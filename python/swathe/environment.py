"""Where Swathe keeps what it knows, and on which machine it runs: asked for without a database."""

from __future__ import annotations

import ipaddress
import os
import platform
from pathlib import Path

VARIABLE = "SWATHE_DATABASE"


def default_url() -> str:
    """Give the URL of the database used when none is given.

    It is `$SWATHE_DATABASE`, else `catalog.sqlite` in `$XDG_DATA_HOME/swathe` or
    `~/.local/share/swathe`. It may hold a password.
    """
    if url := os.environ.get(VARIABLE, "").strip():
        return url
    data = os.environ.get("XDG_DATA_HOME", "")
    folder = data if data.startswith("/") else str(Path.home() / ".local" / "share")
    return f"sqlite:///{os.path.join(folder, 'swathe', 'catalog.sqlite')}"


def state_folder() -> Path:
    """Return the folder of what this machine keeps for its user: `$XDG_STATE_HOME/swathe`.

    Without the variable it is `~/.local/state/swathe`.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state.startswith("/") else Path.home() / ".local" / "state") / "swathe"


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
