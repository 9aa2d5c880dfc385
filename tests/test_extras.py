"""What is installed with an extra is enough for what it is for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import swathe
from swathe.cli.app import main
from tests.jobs.test_expand_targets import POINTINGS, STARS, drawn, pointing
from tests.support.fits_frames import contents

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

ONLY = """
import importlib.abc, sys

class Only(importlib.abc.MetaPathFinder):
    def __init__(self, finders):
        self.finders = finders

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            return None
        found = (each.find_spec(name, path, target) for each in self.finders)
        return next((spec for spec in found if spec is not None), None)

sys.meta_path[:] = [Only(list(sys.meta_path))]
"""
WORK = f"""
import json, sys
from pathlib import Path

folder, blocked = sys.argv[1], set(json.loads(sys.argv[2]))
{ONLY}
"""
WORK += """
import swathe.workers.dask.pool, swathe.workers.dask.processes
from swathe.catalog import Catalog
from swathe.stores.listing import list_objects
from swathe.datasets.scan import scan
from swathe.jobs import Jobs, Limits, Options
from swathe.workers import Runner

ra, dec = json.loads(sys.argv[3])
PLACE = {"id": ["a"], "ra": [ra], "dec": [dec], "size_deg": [0.003]}
OPTIONS = {
    "cut": {}, "npy": {"format": "npy"}, "png": {"format": "png"},
    "rgb": {"format": "rgb", "bands": ["i", "r", "g"]},
    "mean": {"operation": "stack"},
    "median": {"operation": "stack", "stack": "median"},
    "sigma-clipped": {"operation": "stack", "stack": "sigma-clipped"},
    "weighted": {"operation": "stack", "stack": "weighted"},
}
told = {}
with Catalog.open() as catalog:
    catalog.add_store("disk", folder + "/survey")
    catalog.add_dataset("sky", "disk", "", None)
    scan(catalog, "sky", list_objects(catalog.store("disk"), "", None))
    with Jobs(catalog, Path(folder) / "results", limits=Limits()) as jobs:
        runner = Runner(jobs, threads=1)
        runner.start()
        try:
            for name, given in OPTIONS.items():
                job = jobs.submit(PLACE, Options.from_mapping(given), "me")
                while job.phase not in ("COMPLETED", "ERROR", "ABORTED"):
                    job = jobs.wait(job.id, job.phase, 5.0)
                reasons = sorted({row.reason for row in jobs.rows(job.id) if row.reason})
                reasons += [job.error] * (job.error is not None)
                told[name] = [job.phase, job.counts["ok"] > 0, reasons]
        finally:
            runner.stop(60.0)
print(json.dumps(told))
"""


def plain(name: str) -> str:
    """The name of a distribution as indices compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(given: list[str]) -> set[str]:
    """Names of what is installed with requirements, and with what these require."""
    names: set[str] = set()
    waiting = [(Requirement(text), "") for text in given]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        names.add(plain(requirement.name))
        for each in ("", *requirement.extras):
            if (key := (plain(requirement.name), each)) not in seen:
                seen.add(key)
                needs = metadata.distribution(requirement.name).requires or []
                waiting += [(Requirement(text), each) for text in needs]
    return names


def beyond(extra: str) -> list[str]:
    """Modules that are installed here, and that a machine with only this extra has not."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    there = closure(project["dependencies"] + project["optional-dependencies"][extra])
    return sorted(
        module
        for module, owners in metadata.packages_distributions().items()
        if module != "swathe" and not there & {plain(owner) for owner in owners}
    )


@pytest.mark.skipif(not PROJECT.exists(), reason="not run from the sources")
def test_workers_of_the_extra_cluster_do_all_operations(tmp_path: Path) -> None:
    blocked = beyond("cluster")
    assert {"fastapi", "bokeh", "stream_zip", "pytest"} <= set(blocked)
    (tmp_path / "survey").mkdir()
    for number, (ra, dec, band) in enumerate(POINTINGS[:5]):
        header = pointing(ra, dec, turned_deg=7.0 * number)
        header["FILTER"] = band
        pixels = drawn(header, number, STARS)
        (tmp_path / "survey" / f"f{number}.fits").write_bytes(contents(pixels, "fit", header))
    paths = [str(Path(swathe.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    own = {
        "PYTHONPATH": os.pathsep.join(paths),
        "SWATHE_DATABASE": f"sqlite:///{tmp_path / 'catalog.sqlite'}",
    }
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(tmp_path), json.dumps(blocked), json.dumps(STARS[0])],
        capture_output=True, text=True, timeout=300, env=os.environ | own,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert len(told) == 8
    for name, outcome in told.items():
        assert outcome == ["COMPLETED", True, []], name


@pytest.mark.skipif(not PROJECT.exists(), reason="not run from the sources")
def test_the_demonstration_needs_the_extra_portal_only(tmp_path: Path) -> None:
    blocked = beyond("portal")
    assert {"distributed", "pytest", "cryptography"} <= set(blocked)
    # Read by every Python process, so by that of the portal, too.
    (tmp_path / "sitecustomize.py").write_text(f"blocked = {blocked!r}\n{ONLY}")
    paths = [str(tmp_path), str(Path(swathe.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    sizes = ["--frames", "1", "--targets", "5", "--once", "--json", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "swathe.cli", "demo", "-o", str(tmp_path / "demo"), *sizes],
        capture_output=True, text=True, timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["ok"] == 5


def test_the_demonstration_names_the_extra_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr(sys, "argv", ["swathe", "demo", "-o", str(tmp_path / "demo")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "try: pip install 'swathe[portal]'" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


@pytest.mark.skipif(not PROJECT.exists(), reason="not run from the sources")
@pytest.mark.parametrize(
    ("lock", "extras"),
    [("dev", ("dev", "portal")), ("portal", ("portal",)), ("cluster", ("cluster",))],
)
def test_lock_files_fit_what_is_asked_for(lock: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads(PROJECT.read_text())["project"]
    asked = list(project["dependencies"])
    for extra in extras:
        asked += project["optional-dependencies"][extra]
    text = (PROJECT.parent / "requirements" / f"{lock}.lock").read_text()
    pinned: dict[str, list[str]] = {}
    for entry in re.findall(r"^\S+==(?:.|\n(?=[ ]))*", text, re.MULTILINE):
        name, _, rest = entry.partition("==")
        assert "--hash=sha256:" in rest, name
        pinned.setdefault(plain(name.partition("[")[0]), []).append(re.split(r"[ ;\\]", rest)[0])
    for requirement in map(Requirement, asked):
        versions = pinned.get(plain(requirement.name), [])
        assert versions, f"{requirement}: not in {lock}.lock; run: make lock"
        assert all(map(requirement.specifier.contains, versions)), f"{requirement}: run: make lock"
