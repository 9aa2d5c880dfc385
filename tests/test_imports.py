"""Imports point down, and `import swathe` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import swathe

PACKAGE = Path(swathe.__file__).parent

# A module may import from layers above its own line only.
LAYERS = (
    {"errors", "_swathe", "progress"},
    {"archive", "boxes", "preview", "profile", "reader", "sample"},
    {"cutout", "fitting"},
    {"objects", "manifest", "probe", "targets"},
    {"buffer", "single", "many"},
    {"decode", "plots"},
    {"cli_buffer", "cli_probe"},
    {"__init__"},
    {"cli", "demo"},
)
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}


def imported(source: str) -> set[str]:
    """Modules of the package that a source imports anywhere, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "swathe":
                names = {alias.name for alias in node.names}
                found |= {name if name in RANK else "__init__" for name in names}
            elif node.module and node.module.startswith("swathe."):
                found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "swathe":
                    found.add([*alias.name.split("."), "__init__"][1])
    return found


def test_every_module_has_a_layer() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} | {"_swathe"} == set(RANK)


@pytest.mark.parametrize("module", sorted(set(RANK) - {"_swathe"}))
def test_imports_point_down(module: str) -> None:
    source = (PACKAGE / f"{module}.py").read_text()
    # The version is asked for when everything is there.
    allowed = {"__init__"} if RANK[module] > RANK["__init__"] else set()
    upwards = {name for name in imported(source) - allowed if RANK[name] >= RANK[module]}
    assert not upwards


def test_import_loads_no_numpy_and_no_astropy() -> None:
    code = "import swathe, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "swathe" in loaded
    assert not loaded & {"numpy", "astropy", "PIL", "rich", "typer", "pandas", "pyarrow"}
