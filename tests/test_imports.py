"""The house: packages in order, what they need lies below, and `import swathe` is light."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog, this_host
from tests.conftest import MORE

PACKAGES = (
    "core",
    "sandbox",
    "catalog",
    "stores",
    "arrays",
    "files",
    "costs",
    "trace",
    "operations",
    "cutting",
    "datasets",
    "algorithms",
    "jobs",
    "workers",
    "subscriptions",
    "runs",
    "experiments",
    "portal",
    "client",
    "cli",
)
"""From below: a package may use what stands before it."""
TOP = PACKAGES.index("client") + 0.5
"""Where the package `swathe` itself stands: it offers what all but the command line have."""
FOLDER = Path(swathe.__file__).parent
STARTED = "swathe.cli"
"""Processes start the command line as a program; that is no import."""
NAME = re.compile(r"swathe(?:\.\w+)+")
LOGGER = re.compile(r"""getLogger\(["']([\w.]+)["']\)""")


def name_of(path: Path) -> str:
    parts = ("swathe", *path.relative_to(FOLDER).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(FOLDER.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Texts that the program uses: not those that only document it."""
    notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield node.value


@cache
def used_by(module: str) -> frozenset[str]:
    """Modules that one needs: imported anywhere, or named in a text to be imported later."""
    loggers = set(LOGGER.findall(MODULES[module].read_text()))
    texts = set(texts_of(tree_of(module))) - loggers - {STARTED}
    used = {text for text in texts if NAME.fullmatch(text)}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            package = node.module or ""
            names = {f"{package}.{alias.name}" for alias in node.names}
            used |= {name if name in MODULES or "_swathe" in name else package for name in names}
    return frozenset(used & set(MODULES) - {module})


def rank(module: str) -> float:
    return TOP if module == "swathe" else PACKAGES.index(module.split(".")[1])


def test_packages_are_all_there_is() -> None:
    entries = {path.name for path in FOLDER.iterdir() if path.suffix != ".so"} - {"__pycache__"}
    assert entries == {*PACKAGES, "__init__.py", "_swathe.pyi", "py.typed"}


@pytest.mark.parametrize("package", ["swathe", *(f"swathe.{name}" for name in PACKAGES)])
def test_imports_point_down(package: str) -> None:
    inside = [name for name in MODULES if name == package or name.startswith(f"{package}.")]
    modules = ["swathe"] if package == "swathe" else inside
    assert modules
    upwards = {(one, other) for one in modules for other in used_by(one) if rank(other) > rank(one)}
    assert not upwards


def test_no_folder_has_a_circle() -> None:
    """Files and folders that lie side by side: none needs another that needs it."""
    beside: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in MODULES:
        for other in used_by(module):
            one, two = f"{module}.__init__".split("."), f"{other}.__init__".split(".")
            depth = next(at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
            beside[".".join(one[:depth])][one[depth]].add(two[depth])
    circles = {}
    for folder, needs in beside.items():
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as error:
            circles[folder] = error.args[1]
    assert not circles


def test_files_are_read_from_the_folder_of_who_reads_them() -> None:
    paths = {
        (module, ast.unparse(node))
        for module, path in MODULES.items()
        if "Path(__file__)" in path.read_text()
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("Path(__file__).parent")
    }
    assert paths
    assert {path for _, path in paths if path.count("parent") > 1 or "parents" in path} == set()
    assert not [name for name in MODULES if "importlib.resources" in MODULES[name].read_text()]


def test_sql_is_in_the_catalogue_alone() -> None:
    from swathe.catalog.tables import Base

    tables = "|".join(Base.metadata.tables)
    sql = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:{tables})\b")
    spoken = {name for name in MODULES if any(map(sql.search, texts_of(tree_of(name))))}
    assert spoken
    assert {".".join(name.split(".")[:2]) for name in spoken} == {"swathe.catalog"}


def test_no_module_has_the_name_of_a_public_function() -> None:
    """A module would hide the function. Commands are called as the functions that they call."""
    offered = {name: getattr(swathe, name) for name in swathe.__all__}
    functions = {name for name, value in offered.items() if inspect.isfunction(value)}
    assert {"cut", "predict"} <= functions
    assert {"mirror", "probe", "sample"} <= functions
    names = {name for name in MODULES if not name.startswith("swathe.cli.commands.")}
    assert not {name for name in names if name.rpartition(".")[2] in functions}


@pytest.mark.parametrize("package", ["datasets", "stores", "trace"])
def test_no_module_hides_what_a_package_offers(package: str) -> None:
    offered = getattr(swathe, package)
    assert "show" in offered.__all__ or package == "trace"
    assert all(hasattr(offered, name) for name in offered.__all__)
    assert not {f"swathe.{package}.{name}" for name in offered.__all__} & set(MODULES)


def test_tests_mirror_the_packages() -> None:
    here = Path(__file__).parent
    folders = {path.parent.name for path in here.glob("*/test_*.py")}
    assert folders - {"attack", "capi", "examples", "support"} == set(PACKAGES)
    alone = {"benches", "docs", "docstrings", "extras", "wheel"}
    alone |= {"imports", "imports_rust", "names", "names_rust"}
    assert {path.stem for path in here.glob("test_*.py")} == {f"test_{name}" for name in alone}
    assert all((here / f"{name}.py").is_file() for name in MORE)


def test_import_loads_no_numpy_and_no_astropy() -> None:
    code = "import swathe, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "swathe" in loaded
    assert not loaded & {
        "numpy",
        "astropy",
        "PIL",
        "rich",
        "typer",
        "pandas",
        "pyarrow",
        "sqlalchemy",
        "httpx",
        "fastapi",
        "pydantic",
    }


NOT_FOR_CUTS = {
    *("PIL", "alembic", "astropy", "click", "dask", "fastapi", "httpx", "matplotlib", "pandas"),
    *("pyarrow", "pydantic", "rich", "sqlalchemy", "typer", "yaml"),
}
"""Packages that a cut of boxes in pixels does not need."""


@pytest.mark.parametrize("place", ["no catalogue", "path", "store"])
@pytest.mark.parametrize(
    "call",
    [
        "swathe.cut(image, box=(1, 2, 30, 40)).write(folder + '/cut.fits')",
        "swathe.predict(targets)",
        "swathe.predict([f'{image} 10 10 8 8'])",
        "assert swathe.cut_many(targets, folder + '/cuts').meta['ok'] == 2",
        "assert swathe.cut_many(targets, folder + '/cuts.zip').meta['ok'] == 2",
        "assert len(swathe.cut_many([f'{image} 10 10 8 8'], folder + '/cuts.tar')) == 1",
    ],
)
def test_a_first_cut_of_boxes_loads_only_what_it_needs(
    call: str, place: str, tmp_path: Path
) -> None:
    image, database = str(tmp_path / "image.fits"), f"sqlite:///{tmp_path}/catalog.sqlite"
    fits.PrimaryHDU(np.ones((50, 60), np.int16)).writeto(image)
    has_catalog = place != "no catalogue"
    if has_catalog:
        with Catalog.open(database) as catalog:
            catalog.put_compute(this_host(), {}, datetime.now(UTC))
            catalog.add_store("survey", str(tmp_path))
    if place == "store":
        image = "survey:image.fits"
    code = (
        "import sys, swathe; image, folder = sys.argv[1:]\n"
        "targets = {'file': [image] * 2, 'x0': [1, 2], 'y0': [3, 4], 'width': [5, 6], "
        "'height': [7, 8]}\n"
        f"{call}\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, image, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"SWATHE_DATABASE": database},
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "swathe" in loaded
    assert not loaded & NOT_FOR_CUTS
    assert (tmp_path / "catalog.sqlite").exists() == has_catalog


@pytest.mark.parametrize("suffix", ["fits", "npy", "png"])
def test_the_command_cut_loads_no_other_command(suffix: str, tmp_path: Path) -> None:
    fits.PrimaryHDU(np.ones((50, 60), np.int16)).writeto(tmp_path / "image.fits")
    words = ["swathe", "cut", "image.fits", "--box", "1 2 30 40", "-o", f"cut.{suffix}"]
    code = (
        f"import sys; sys.argv = {words}\n"
        "from swathe.cli.app import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    modules = set(done.stdout.splitlines()[-1].split())
    loaded = {name.split(".")[0] for name in modules}
    assert not loaded & (NOT_FOR_CUTS - {"typer", "PIL"})
    assert ("PIL" in loaded) == (suffix == "png")
    assert ("numpy" in loaded) == (suffix != "fits")
    commands = {name for name in modules if name.startswith("swathe.cli.commands.")}
    assert commands == {"swathe.cli.commands.cut"}


def test_dir_shows_the_public_names_only() -> None:
    assert dir(swathe) == sorted(swathe.__all__)
    assert {"cut", "cut_many", "errors", "open", "trace"} <= set(dir(swathe))
    public = {"algorithms", "datasets", "runs", "sandbox", "stores", "trace"}
    assert not (set(PACKAGES) - public) & set(dir(swathe))
    assert all(hasattr(swathe, name) for name in dir(swathe))


@pytest.mark.parametrize("name", ["cache", "datasets", "stores", "trace"])
def test_dir_of_a_module_shows_its_public_names_only(name: str) -> None:
    module = getattr(swathe, name)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, each) for each in dir(module))


@pytest.mark.parametrize("name", ["cache", "errors"])
def test_modules_of_core_are_offered_by_the_package(name: str) -> None:
    from importlib import import_module

    assert import_module(f"swathe.{name}") is getattr(swathe, name)
    assert getattr(swathe, name).__name__ == f"swathe.core.{name}"
