"""Sample surveys that tests read: their first frame is a copy, since to compress it takes long."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from swathe.core.sample_survey import make_sample


@cache
def first_frame() -> Path:
    """Make the sample of one frame that others begin as; once in a process. Return its folder."""
    folder = Path(tempfile.mkdtemp(prefix="swathe-test-sample-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    table = make_sample(folder, frames=1, seed=1, targets=1)
    table.unlink()
    return folder


def new_sample(folder: Path, frames: int, targets: int) -> Path:
    """Make a sample survey of seed 1 in a new folder; return its table of targets."""
    shutil.copytree(first_frame(), folder, dirs_exist_ok=True)
    return make_sample(folder, frames=frames, seed=1, targets=targets)
