"""The tree of commands: every one has `--json`, help, verbs and choices of one kind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from astropy.io import fits
from typer.testing import CliRunner

import swathe
from swathe.catalog import store_settings, tokens
from swathe.cli.app import app, main
from swathe.operations.registry import formats
from swathe.trace.viewer import kinds
from swathe.workers.simulate import network
from tests.support.fits_frames import SWATHE, swathe_command

NO_NOUN = re.compile(r"(At|And|Of|So|There|Here|With|Else|In|On|By|Where|What|Who|It|This)\b")


def _below(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    if isinstance(command, typer.core.TyperGroup):
        context = command.context_class(command)
        for name in command.list_commands(context):
            yield from _below((*words, name), command.get_command(context, name))


TREE = dict(_below((), typer.main.get_command(app)))
LEAVES = {
    words: command
    for words, command in TREE.items()
    if not isinstance(command, typer.core.TyperGroup)
}


def test_the_whole_tree_is_walked() -> None:
    assert len(LEAVES) > 45
    assert {("cut",), ("portal", "token", "add"), ("bench", "join")} <= set(LEAVES)


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_has_json(words: tuple[str, ...]) -> None:
    """Commands that run until interrupted, too: they print their address, or each event."""
    (option,) = (each for each in LEAVES[words].params if "--json" in each.opts)
    assert option.name == "as_json"


@pytest.mark.parametrize("words", TREE, ids=" ".join)
def test_help_of_commands_and_options_has_a_noun(words: tuple[str, ...]) -> None:
    command = TREE[words]
    assert re.match(r"[A-Z][a-z]+,? \w+", command.help or ""), command.help
    for each in command.params:
        text = each.help or ""
        assert re.match(r"[A-Z0-9]\S* \S+", text), f"{each.opts}: {text}"
        assert not NO_NOUN.match(text), f"{each.opts}: {text}"


def test_things_are_added_removed_listed_and_shown() -> None:
    others = {"create", "delete", "revoke", "reserve", "release", "unregister", "ls", "rm"}
    # Objects of a store are listed and removed as files of the shell are; on tape they stay.
    allowed = {("ls",), ("rm",), ("tape", "release")}
    assert {words for words in LEAVES if words[-1] in others} == allowed
    for group in (("store",), ("dataset",), ("portal", "token"), ("pool", "reservation")):
        assert {(*group, verb) for verb in ("add", "remove", "list")} <= set(LEAVES)


def test_quantities_take_a_unit() -> None:
    """Only `bench` and `simulate` have units in names: their flags are the keys of a TOML file."""
    with_unit = {
        name
        for words, command in LEAVES.items()
        if words[0] not in ("bench", "simulate")
        for each in command.params
        for name in each.opts
        if re.search(r"\w-(s|ms|h|days|deg|mb|gb|bytes-s)$", name)
        if words != ("stripe", "plan")  # its rate has no unit that is written otherwise
    }
    assert not with_unit
    times = {
        name
        for words, command in LEAVES.items()
        if words[0] not in ("bench", "simulate")
        for each in command.params
        for name in each.opts
        if each.metavar == "TIME"
    }
    names = {"--check", "--for", "--grace", "--interval", "--lifetime", "--max-time", "--patience"}
    assert times == names | {"--compute", "--cpu", "--wall", "--within", "--until", "--wait"}


def choices(option: str, *words: str) -> tuple[str, ...]:
    (found,) = (each for each in LEAVES[words].params if option in each.opts)
    return tuple(found.type_descriptor.choices)


def test_choices_are_those_of_the_code() -> None:
    assert choices("--tier", "store", "add") == store_settings.TIERS
    assert choices("--tier", "simulate") == tuple(network.TIERS)
    assert choices("--kind", "trace", "view") == kinds.KINDS
    assert choices("--scope", "portal", "token", "add") == tokens.SCOPES
    assert set(choices("--format", "cut")) == set(formats())


PYTHON = {
    "cut": ("swathe.cut", "swathe.cut_many"),
    "reduce": ("swathe.reduce",),
    "info": ("swathe.open",),
    "predict": ("swathe.predict",),
    "sample": ("swathe.sample", "swathe.sample_swaths"),
    "find": ("swathe.find",),
    "probe": ("swathe.probe",),
    "buffer": ("swathe.probe_buffer",),
    "simulate": ("swathe.simulate_pool",),
    "store": ("swathe.stores",),
    "stripe status": ("swathe.stores.stripe_status",),
    "stripe check": ("swathe.stores.check_stripes",),
    "stripe repair": ("swathe.stores.repair_stripes",),
    "stripe rebalance": ("swathe.stores.rebalance_stripes",),
    "stripe plan": ("swathe.stores.plan_stripe",),
    "tape stage": ("swathe.stores.stage_objects",),
    "tape status": ("swathe.stores.tape_status",),
    "tape release": ("swathe.stores.release_objects",),
    "tape evict": ("swathe.stores.evict_objects",),
    "ls": ("swathe.stores.list_objects", "swathe.stores.list_folder"),
    "stat": ("swathe.stores.stat_object",),
    "rm": ("swathe.stores.remove_objects",),
    **dict.fromkeys(("cp", "put", "get"), ("swathe.stores.copy_objects",)),
    "dataset": ("swathe.datasets",),
    "dataset mirror": ("swathe.mirror",),
    "cache": ("swathe.cache",),
    "algorithm": ("swathe.algorithms",),
    "library": ("swathe.algorithms.libraries",),
    "environment": ("swathe.algorithms.environments",),
    "algorithm check": ("swathe.check_algorithm",),
    "algorithm try": ("swathe.try_algorithm",),
    "run": ("swathe.runs",),
    "run targets": ("swathe.open_run",),
    "run show": ("swathe.open_run",),
    "superfile pack": ("swathe.runs.pack_files",),
    "superfile unpack": ("swathe.runs.unpack_files",),
    "superfile list": ("swathe.superfile",),
    "superfile recover": ("swathe.runs.recover_superfile",),
    "order": ("swathe.RemotePortal.order", "swathe.RemotePortal.estimate_order"),
    "subscribe": ("swathe.RemotePortal.subscribe",),
    "subscription list": ("swathe.RemotePortal.subscriptions",),
    "subscription show": ("swathe.RemotePortal.subscription",),
    "subscription feed": ("swathe.RemotePortal.feed",),
    "subscription pause": ("swathe.RemotePortal.pause_subscription",),
    "subscription resume": ("swathe.RemotePortal.resume_subscription",),
    "subscription remove": ("swathe.RemotePortal.remove_subscription",),
    "job submit": ("swathe.RemotePortal.submit",),
    "job list": ("swathe.RemotePortal.jobs",),
    "job remove": ("swathe.RemoteJob.delete",),
    "job": ("swathe.RemoteJob",),
    "pool status": ("swathe.RemotePortal.pool",),
    "sandbox": ("swathe.sandbox",),
    "trace view": ("swathe.trace.view",),
    "trace collect": ("swathe.trace.Collector",),
    "trace host": ("swathe.trace.Monitor",),
    "trace report": ("swathe.trace.report",),
    "trace export": ("swathe.trace.export_chrome", "swathe.trace.export_otlp"),
}
"""The public names that do what a command does. Those of a group have the names of its commands."""
ONLY_SHELL = {"demo", "portal", "pool", "bench", "catalog", "store export", "stripe serve"}
"""Programs that run until they are stopped, and work of operators on the machine of a portal."""


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_what_the_shell_can_do_python_can(words: tuple[str, ...]) -> None:
    if " ".join(words) in ONLY_SHELL:
        return
    names = PYTHON.get(" ".join(words))
    if names is None and words[0] in PYTHON:
        names = tuple(f"{name}.{words[-1]}" for name in PYTHON[words[0]])
    if names is None:
        assert words[0] in ONLY_SHELL
        return
    for name in names:
        thing: Any = swathe
        for part in name.split(".")[1:]:
            thing = getattr(thing, part)
        assert callable(thing)


Failing = Callable[[str], tuple[object, str, str]]


@pytest.fixture
def fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Failing:
    """Run a command that fails, in an empty folder; give its exit code and both outputs."""

    def run(words: str) -> tuple[object, str, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["swathe", *words.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info --json", "Missing argument"),
        ("info a.fit --json --bad", "No such option"),
        ("info a.fit --bad --json", "No such option"),
        ("info a.fit --header 1 --json --hdu", "requires an argument"),
        ("store add here --json", "Missing argument"),
        ("store add here /data --tier moon --json", "'moon' is not one of 'local', 'lan', 'wan'"),
        ("cut a.fit --sky NGC 1 --size 1deg --json", "needs quotes"),
        ("find --sky 1 1 --radius x --json", "radius: expected degrees, an angle with a unit"),
        ("bench single -o out --repeats x --json", "--repeats"),
        ("job list --json", "expected a URL, found none"),
        ("portal nonsense --json", "No such command 'nonsense'"),
    ],
)
def test_errors_of_usage_are_json(words: str, said: str, fails: Failing) -> None:
    code, out, err = fails(words)
    error = json.loads(out)
    assert len(out.splitlines()) == 1
    assert code == error["exit_code"] == 2
    assert said in error["error"]
    assert err


@pytest.mark.parametrize("words", ["info --bad", "info --header -- --json", "cut --targets --json"])
def test_errors_without_json_are_text(words: str, fails: Failing) -> None:
    """After `--`, or as the value of another option, the word is no option."""
    code, out, err = fails(words)
    assert (out, code in (2, 3)) == ("", True)
    assert err


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("swathe po", {"portal", "pool"}),
        ("swathe portal token ", {"add", "list", "remove"}),
        ("swathe job submit --mo", {"--mode"}),
        ("swathe cut --mode ", {"trim", "partial", "strict"}),
    ],
)
def test_bash_completes(line: str, offered: set[str]) -> None:
    words = line.split(" ")
    completing = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    ran = swathe_command(env={"_SWATHE_COMPLETE": "complete_bash", **completing})
    assert (set(ran.stdout.split()), ran.stderr) == (offered, "")


def test_script_of_completion_is_the_same_if_python_runs_the_module() -> None:
    shell_is_named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = swathe_command("--show-completion", "bash", env=shell_is_named)
    ran = subprocess.run(
        [sys.executable, "-m", "swathe.cli", "--show-completion", "bash"],
        env={**os.environ, **shell_is_named},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_SWATHE_COMPLETE=complete_bash" in ran.stdout
    assert ran.stdout == shown.stdout


def test_bash_takes_the_script_of_completion(tmp_path: Path) -> None:
    """With the script, Tab after `swathe cut --mode ` offers the modes."""
    # Else Typer takes the shell that runs the tests, which may be none that it knows.
    shell_is_named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = swathe_command("--show-completion", "bash", env=shell_is_named)
    assert (shown.returncode, shown.stderr) == (0, "")
    script = tmp_path / "completion.sh"
    script.write_text(
        f"{shown.stdout}\nCOMP_WORDS=(swathe cut --mode '')\nCOMP_CWORD=3\n"
        "function=$(complete -p swathe | sed 's/.*-F \\([^ ]*\\) .*/\\1/')\n"
        f'$function {SWATHE}\necho "${{COMPREPLY[@]}}"\n'
    )
    ran = subprocess.run(
        ["bash", "--norc", script],
        env={**os.environ, "PATH": f"{Path(SWATHE).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout.split(), ran.stderr) == (["trim", "partial", "strict"], "")


@pytest.mark.parametrize("quiet", [False, True])
def test_a_list_that_is_cut_prints_its_progress_as_lines_of_json(
    quiet: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swathe.cutting import cut_run

    monkeypatch.setattr(cut_run, "REPORT_S", 0.0)
    image = tmp_path / "a.fits"
    fits.PrimaryHDU(np.zeros((40, 50), np.int16)).writeto(image)
    table = tmp_path / "a.csv"
    table.write_text("file,x0,y0,width,height\n" + f"{image},1,2,10,10\n" * 20)
    words = ["cut", "--targets", str(table), "-o", str(tmp_path / "out.zip"), "--json"]
    done = CliRunner().invoke(app, [*words, "--quiet"] if quiet else words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["ok"] == 20
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert bool(lines) is not quiet
    for line in lines:
        assert set(line) == {"done", "targets", "part", "left_s", "interval_s"}
        assert line["targets"] == 20 and 0 <= line["part"] <= 1
