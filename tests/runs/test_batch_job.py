"""Runs as jobs of Slurm: their script and walltime."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.cli.app import app
from swathe.core.errors import JobError, OptionError, SettingsError
from tests.support.catalogs import new_catalog

RUN = """
name = "astro3d"
iterations = 120
ranks = 8
compute_s = 4.5
[arrays.temp]
shape = [128, 128, 128]
every = 6
location = "disk"
"""


@pytest.fixture(autouse=True)
def run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings of a run; its store is in a catalogue of its own."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


def test_the_walltime_is_that_of_writing_and_computing(run_file: Path) -> None:
    job = swathe.runs.submit(run_file, ["srun", "python", "a b.py"], dry_run=True)
    assert job.write_s == swathe.runs.predict(run_file).interval_s[1]
    assert job.compute_s == 121 * 4.5
    assert job.walltime_s == 60 * math.ceil((job.write_s + job.compute_s) / 60)
    assert job.number == ""
    assert job.script.splitlines() == [
        "#!/bin/sh",
        "#SBATCH --job-name=astro3d",
        "#SBATCH --ntasks=8",
        f"#SBATCH --time={job.walltime_s // 60}",
        "#SBATCH --no-requeue",
        "exec srun python 'a b.py'",
    ]
    longer = swathe.runs.submit(run_file, ["srun"], compute_s=100.0, dry_run=True)
    assert longer.compute_s == 121 * 100.0


def test_the_command_prints_the_script(run_file: Path) -> None:
    words = ["run", "submit", str(run_file), "--compute", "2min", "--dry-run"]
    words += ["--sbatch", "--partition=long", "--sbatch", "-C fast|big"]
    command = ["--", "srun", "--mpi=pmi2", "./a"]
    said = CliRunner().invoke(app, [*words, *command], catch_exceptions=False).stdout
    assert "#SBATCH --partition=long\n#SBATCH '-C fast|big'\nexec srun --mpi=pmi2 ./a\n" in said
    said = CliRunner().invoke(app, [*words, "--json", *command], catch_exceptions=False).stdout
    assert json.loads(said)["compute_s"] == 121 * 120


def test_what_is_missing_or_wrong_is_told(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="astro3d: expected a command"):
        swathe.runs.submit(run_file, [], dry_run=True)
    for option in ("partition=long", "--a\n#SBATCH --b", "-"):
        with pytest.raises(OptionError, match="expected an option of sbatch"):
            swathe.runs.submit(run_file, ["a"], options=[option], dry_run=True)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(JobError, match="sbatch: "):
        swathe.runs.submit(run_file, ["a"])
    run_file.write_text(RUN.replace("compute_s = 4.5", ""))
    with pytest.raises(OptionError, match="astro3d: expected compute_s"):
        swathe.runs.submit(run_file, ["a"], dry_run=True)
    run_file.write_text(RUN.replace("4.5", "-1"))
    with pytest.raises(SettingsError, match="compute_s"):
        swathe.runs.submit(run_file, ["a"], dry_run=True)
