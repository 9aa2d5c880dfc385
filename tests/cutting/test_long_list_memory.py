"""A million targets in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from astropy.io import fits

from tests.support.fits_frames import fits_bytes, noise

COUNT = 1_000_000
MOST_MB = 600
CODE = """
import json, sys
import swathe

folder, output, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

def targets():
    for n in range(count):
        yield {"file": f"{folder}/f{n * 20 // count}.fits", "x0": n % 380, "y0": n % 280,
               "width": 10, "height": 10}

manifest = swathe.cut_many(targets(), output, progress=False)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak_mb = int(status["VmHWM"].split()[0]) // 1024  # ru_maxrss has the parent's before exec
print(json.dumps([manifest.meta["ok"], manifest.meta["notes"], peak_mb]))
"""


@pytest.mark.parametrize(("output", "count"), [("null:", COUNT), ("out.zip", COUNT // 2)])
def test_long_list_takes_little_memory(output: str, count: int, tmp_path: Path) -> None:
    for number in range(20):
        image = fits.PrimaryHDU(noise(number))
        (tmp_path / f"f{number}.fits").write_bytes(fits_bytes(image))
    where = output if output == "null:" else str(tmp_path / output)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path), where, str(count)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    ok, notes, peak_mb = json.loads(done.stdout)
    assert (ok, notes) == (count, [])
    assert peak_mb < MOST_MB
