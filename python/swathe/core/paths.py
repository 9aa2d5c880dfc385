"""Where Swathe keeps what it knows."""

from __future__ import annotations

import os
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
