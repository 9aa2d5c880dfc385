"""`swathe bench`: flags and files mean the same, and mistakes are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swathe.cli.app import app
from swathe.cli.commands.bench import SINGULAR
from swathe.core.errors import OutputError, SettingsError
from swathe.experiments.settings import (
    KINDS,
    RampSettings,
    RegionSettings,
    SingleSettings,
    settings_of,
)
from tests.support.sample_surveys import new_sample


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("survey")
    new_sample(folder, 2, 2)
    return folder


def invoke(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["bench", *map(str, words)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


@pytest.mark.more
def test_region_writes_tables_figures_and_report(survey: Path, tmp_path: Path) -> None:
    file = tmp_path / "bench.toml"
    file.write_text(
        f'[region]\nstores = ["{survey}"]\nframes = 2\nsizes = [10, 100]\nrepeats = 1\n'
        'regions = 2\nways = ["one"]\n[single]\nrepeats = 2\n'
    )
    code, said = invoke("region", file, "--size", 20, "--output", tmp_path / "out", "-q")
    assert code == 0, said
    assert "regions, 1 / s" in said and "whole image, Mbit / s" in said
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"results.ecsv", "samples.ecsv", "report.html", "regions.png", "regions.svg"}
    from astropy.table import Table

    table = Table.read(tmp_path / "out" / "results.ecsv")
    assert list(table["region"]) == [20]  # the flag counts more
    assert table.meta["settings"]["regions"] == 2
    assert table.meta["circumstances"]["git"]
    for key in ("cpu", "cores", "memory_bytes", "kernel", "host", "swathe"):
        assert key in table.meta["circumstances"]
    again = ["region", file, "--size", 20, "--output", tmp_path / "again", "--json", "-q"]
    code, said = invoke(*again)
    assert json.loads(said)["settings"] == table.meta["settings"]
    code, said = invoke("compare", tmp_path / "out", tmp_path / "again", "--json")
    assert code == 0 and len(json.loads(said)["rows"]) == 1


def test_an_output_that_cannot_be_is_told_before_anything_is_measured(
    survey: Path, tmp_path: Path
) -> None:
    from tests.experiments.test_experiments import keep_samples, samples_of

    (tmp_path / "file").write_text("mine")
    keep_samples(tmp_path / "other", samples_of({"x": 1.0}, 1))
    words = ["buffer", "--store", survey / "frame-000001.fit"]
    with pytest.raises(OutputError, match="file: exists and is not a folder"):
        invoke(*words, "-o", tmp_path / "file")
    with pytest.raises(SettingsError, match=r"other: expected results of .*, found 'region'"):
        invoke(*words, "-o", tmp_path / "other")
    with pytest.raises(SettingsError, match=r"other: expected results of .*, found 'region'"):
        invoke("compare", tmp_path / "other", tmp_path / "other", "-o", tmp_path / "other")


def test_single_from_flags_alone(survey: Path, tmp_path: Path) -> None:
    words = ["single", "--store", survey, "--frames", 2, "--images", 1, "--repeats", 1]
    words += ["--crops", 1, "--method", "FIT", "--client", "swathe", "-o", tmp_path / "out"]
    code, said = invoke(*words)
    assert code == 0, said
    assert "report.html" in said
    assert (tmp_path / "out" / "overview.svg").read_text().startswith("<svg")


def test_compare_fails_on_a_regression_if_asked(tmp_path: Path) -> None:
    from tests.experiments.test_experiments import keep_samples, samples_of

    keep_samples(tmp_path / "a", samples_of({"x": 1.0}, 1))
    keep_samples(tmp_path / "b", samples_of({"x": 1.5}, 2))
    words = ["compare", tmp_path / "a", tmp_path / "b"]
    assert invoke(*words)[0] == 0
    assert invoke(*words, "--fail-on-regression")[0] == 1
    back = ["compare", tmp_path / "b", tmp_path / "a", "--fail-on-regression"]
    assert invoke(*back, "-o", tmp_path / "c")[0] == 0
    assert (tmp_path / "c" / "report.html").exists()


def test_compare_does_not_pass_what_it_cannot_tell(tmp_path: Path) -> None:
    from tests.experiments.test_experiments import few_samples, keep_samples

    keep_samples(tmp_path / "a", few_samples(1.0, 3))
    keep_samples(tmp_path / "b", few_samples(2.0, 3))
    words = ["compare", tmp_path / "a", tmp_path / "b"]
    assert invoke(*words)[0] == 0
    with pytest.raises(
        SettingsError, match=r"1 of 1 cases have too few samples.*: expected 4 of each"
    ):
        invoke(*words, "--fail-on-regression")


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_a_flag(kind: str) -> None:
    code, said = invoke(kind, "--help")
    assert code == 0
    for name in KINDS[kind].__dataclass_fields__:
        flag = SINGULAR.get(name, name).replace("_", "-")
        assert f"--{flag} " in said or f"--{name} " in said, name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[singel]\n", "unknown section: 'singel'"),
        ("[single]\nstore = 'a'\n", "unknown key in [single]: 'store'"),
        ("[single]\nrepeats = '3'\n", "single.repeats: expected a whole number, found '3'"),
        ("[single]\nrepeats = 0\n", "single.repeats: expected at least 1, found 0"),
        ("[single]\nmethods = ['zip']\n", "single.methods: expected 'GZ', "),
        ("[single]\nmethods = []\n", "single.methods: expected one at least"),
        ("[single]\ncrops = [1, 1]\n", "single.crops: expected each once"),
        ("[single]\ncrops = 1\n", "single.crops: expected a list, found 1"),
        ("[single]\nbudget_s = nan\n", "single.budget_s: expected at least"),
        ("[single]\nname = 'frame'\n", "single.name: expected a name with a number"),
        ("[single]\nname = 'f-{}-{}'\n", "single.name: expected a name with a number"),
        ("single = 3\n", "single: expected a section [single]"),
        ("[single\n", "is not valid TOML"),
    ],
)
def test_mistakes_in_a_file_are_told(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "bench.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        settings_of(SingleSettings, file, {})
    assert told in str(caught.value) and str(caught.value).startswith(str(file))


def test_mistakes_in_flags_are_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="expected 'one' or 'many', found 'some'"):
        invoke("region", "--way", "some", "-o", tmp_path)
    code, said = invoke("region", "--regions", "x", "-o", tmp_path)
    assert code == 2 and "--regions" in said
    with pytest.raises(SettingsError, match="cannot be read"):
        settings_of(RegionSettings, tmp_path / "absent.toml", {})


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"portal": "http://x", "stores": ("a",)}, "ramp.portal"),
        ({"dataset": "x"}, "ramp.dataset"),
        ({"hosts": 2}, "ramp.listen"),
        ({"listen": "127.0.0.1:1"}, "ramp.listen"),
        ({"listen": "127.0.0.1:1", "hosts": 5, "clients": 2}, "ramp.hosts"),
        ({"offsets": "x.toml"}, "ramp.offsets"),
        ({"model": "half"}, "ramp.model"),
        ({"stay_s": 2.0, "window_s": 1.0}, "ramp.stay_s"),
    ],
)
def test_settings_of_a_ramp_must_go_together(flags: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        settings_of(RampSettings, None, flags)


def test_flags_and_file_mean_the_same(tmp_path: Path) -> None:
    file = tmp_path / "bench.toml"
    file.write_text("[ramp]\nclients = 7\nmodel = 'open'\nrate = 2\nstores = ['x', 'y']\n")
    flags = {"clients": 7, "model": "open", "rate": 2.0, "stores": ["x", "y"]}
    assert settings_of(RampSettings, file, {}) == settings_of(RampSettings, None, flags)
