"""Environment of a measurement: code, machine, and store profiles."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.catalog import Catalog, root_url
from swathe.core.errors import StoreSettingsError
from swathe.core.host import cores, this_host
from swathe.stores.registry import LOCAL_ROOT, known_stores

if TYPE_CHECKING:
    from collections.abc import Iterable

PEERS = ("astropy", "fitsio", "numpy")


def circumstances(stores: Iterable[str]) -> dict[str, Any]:
    """Return the circumstances of a measurement made now.

    Args:
        stores: names, URLs or paths; the profiles of those probed from here are included.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "swathe": _swathe.__version__,
        "git": git_version(),
        "python": platform.python_version(),
        "peers": {name: version(name) for name in PEERS},
        "host": this_host(),
        "cpu": cpu_model(),
        "cores": cores(),
        "memory_bytes": memory_bytes(),
        "kernel": f"{platform.system()} {platform.release()}",
        "load": [round(load, 2) for load in os.getloadavg()],
        "profiles": profiles(stores),
    }


def git_version() -> str:
    """Return the commit of the running code, with `+` if it was changed since; empty elsewhere."""
    description = _git("describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*")
    # Installed into a folder of another repository, the code is not part of that.
    ours = _git("ls-files", "--error-unmatch", Path(__file__).name)
    return description if ours else ""


def _git(*words: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


def cpu_model() -> str:
    """Return the CPU's name as Linux has it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def memory_bytes() -> int:
    """Return the memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def version(package: str) -> str:
    """Return the version of a Python package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def profiles(stores: Iterable[str]) -> dict[str, Any]:
    """Return the profiles of those stores that were measured from here."""
    stores_here = known_stores()
    if stores_here is None:
        return {}
    by_name = {}
    with Catalog.open() as catalog:
        for store in stores:
            address = f"{store}:" if stores_here.locate(f"{store}:")[1] != f"{store}:" else store
            root = stores_here.locate(address)[0]
            try:
                root = root_url(LOCAL_ROOT if root == "file://" else root)
            except StoreSettingsError:
                continue
            profile = catalog.profile(root, this_host())
            if profile is not None:
                fit_time = profile.fitted_at.isoformat(timespec="seconds")
                by_name[_swathe.redact_url(store)] = {"costs": profile.costs, "fitted": fit_time}
    return by_name
