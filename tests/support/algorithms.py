"""Sources of algorithms."""

from __future__ import annotations

import io
import tarfile

LST = """\
# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy", "netCDF4"]
# [tool.swathe.algorithm]
# name = "lst-quarter-degree"
# version = "1.2"
# inputs.granules = {collection = "MOD11_L2", arrays = ["LST", "QC"], count = "1..288", group = "day", window = {before = 1}}
# inputs.climatology = {file = "clim.nc"}
# outputs.grid = {media_type = "application/netcdf", checks = ["LST", "count"]}
# outputs.log = {media_type = "text/csv", optional = true}
# parameters.min_quality = {type = "integer", minimum = 0, maximum = 3, default = 1}
# resources = {cpu = 1, memory = "1 GB", wall = "10 min", output = "200 MB"}
# ///
def run(granules, climatology, grid, log, min_quality): ...
"""  # noqa: E501 - as users write it


def header(lines: str) -> str:
    """Return a source with these lines as its header."""
    return f"# /// script\n# {lines}\n# ///\n"


def with_line(line: str) -> str:
    """Return that source with this line instead of the one of the same key, or besides."""
    key = line.partition("=")[0].strip()
    lines = [each for each in LST.splitlines() if not each.startswith(f"# {key} ")]
    return "\n".join([*lines[:4], f"# {line}", *lines[4:]])


PACKAGE = """\
[tool.swathe.algorithm]
name = "sums-c"
version = "1"
inputs.images = {group = "all"}
outputs.table = {media_type = "text/csv"}
parameters.factor = {type = "integer", default = 2}

[tool.swathe.algorithm.build]
language = "c"
sources = ["main.c"]
flags = ["-O2"]
"""
"""Description of a package of C."""
LIBRARY = """\
[tool.swathe.library]
name = "mylib"
version = "1.0"
headers = ["include/mylib.h"]

[tool.swathe.library.build]
language = "c"
sources = ["one.c", "two.c"]
flags = ["-O2", "-Iinclude"]
"""
LIBRARY_FILES = {
    "library.toml": LIBRARY.encode(),
    "include/mylib.h": b"int one(void); int two(void);\n",
    "one.c": b'#include "mylib.h"\nint one(void) { return 1; }\n',
    "two.c": b'#include "mylib.h"\nint two(void) { return one() + 1; }\n',
}
"""A library of C."""


def tar_of(files: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=form) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return content.getvalue()
