"""Default locations of the catalogue's database and of Swathe's other state."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "SWATHE_DATABASE"


def default_url() -> str:
    """Return the default URL of the catalogue's database.

    It is `$SWATHE_DATABASE`, else `catalog.sqlite` in `$XDG_DATA_HOME/swathe` or
    `~/.local/share/swathe`. It may hold a password.
    """
    if url := os.environ.get(VARIABLE, "").strip():
        return url
    data = os.environ.get("XDG_DATA_HOME", "")
    folder = data if data.startswith("/") else str(Path.home() / ".local" / "share")
    return f"sqlite:///{os.path.join(folder, 'swathe', 'catalog.sqlite')}"


def state_folder() -> Path:
    """Return the folder for state of this user on this machine: `$XDG_STATE_HOME/swathe`.

    Without the variable it is `~/.local/state/swathe`.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state.startswith("/") else Path.home() / ".local" / "state") / "swathe"


def builds_folder() -> Path:
    """Return the folder for what compilers made of users' sources.

    It is `$SWATHE_BUILD_DIR`, else `builds` in `$XDG_CACHE_HOME/swathe` or `~/.cache/swathe`.
    """
    if own := os.environ.get("SWATHE_BUILD_DIR", "").strip():
        return Path(own)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return home / "swathe" / "builds"
