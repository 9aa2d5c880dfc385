"""Run an algorithm inside the sandbox: `python -I -B box_main.py`.

`group_run.py` writes the call, `$SWATHE_IN/call.json`. Outputs go to `$SWATHE_OUT`. This file
imports nothing of Swathe until a granule's array is read: many algorithms use other libraries.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any


class Granule(os.PathLike[str]):
    """Granule that an algorithm gets; a path for other libraries.

    Attributes:
        path: its file.
        id: its name.
        start: first time, UTC; `None`: unknown.
        end: last time.
        role: `group`, or `before` or `after` for a neighbour.
    """

    def __init__(self, folder: Path, values: dict[str, Any]) -> None:
        """Take the values of a call."""
        self.path = str(folder / values["file"])
        self.id: str = values["id"]
        self.role: str = values["role"]
        self.start, self.end = (
            None if values[key] is None else datetime.fromisoformat(values[key])
            for key in ("start", "end")
        )
        self._file: Any = None

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        """Return its path: some libraries take texts only."""
        return self.path

    def __repr__(self) -> str:
        return f"<Granule {self.id}>"

    def __getitem__(self, name: str) -> Any:
        """Return an array by its path, or by its name if only one has it.

        It is read by slices, as `granule["LST"][0:10]`, or whole, as `granule["LST"].data`.
        """
        from swathe.core.confined import use_sandbox
        from swathe.files.file import open as open_file

        if self._file is None:
            use_sandbox()
            self._file = open_file(self.path)
        return self._file[name]


def main() -> int:
    """Call the function `run` of an algorithm; return the exit code."""
    folder, results = Path(os.environ["SWATHE_IN"]), Path(os.environ["SWATHE_OUT"])
    call = json.loads((folder / "call.json").read_bytes())
    sys.path[:0] = [str(folder / each) for each in call["paths"]]
    arguments: dict[str, Any] = dict(call["parameters"])
    for name, granules in call["granules"].items():
        arguments[name] = [Granule(folder, each) for each in granules]
    arguments |= {name: folder / file for name, file in call["files"].items()}
    arguments |= {name: results / file for name, file in call["outputs"].items()}
    source = folder / call["source"]
    module = ModuleType("algorithm")
    module.__file__ = str(source)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source.read_bytes(), source, "exec"), module.__dict__)
        module.run(**arguments)
    except Exception as error:
        _report(error)
        return 1
    return 0


def _report(error: Exception) -> None:
    """Print a traceback without the frames of this file."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    traceback.print_exception(error.with_traceback(frames))


if __name__ == "__main__":
    sys.exit(main())
