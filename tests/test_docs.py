"""The documents: complete, and true of the code."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import swathe
from swathe.catalog.store_settings import OPTIONS
from swathe.portal.config import Config

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
if not DOCS.exists():
    pytest.skip("not run from the sources", allow_module_level=True)

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PATH = re.compile(r"(?:crates|docs|deploy|fuzz|python|requirements|tests)/[\w./-]*\w/?")
MODULE = re.compile(r"(?<!tool\.)\bswathe(?:\.[a-z_]\w*)+")


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = module_of(DOCS / "reference.py")
PAGES: dict[str, str] = REFERENCE.pages()
ON_DISK = sorted(DOCS.rglob("*.md"))
AT_ROOT = [ROOT / name for name in ("README.md", *REFERENCE.ROOT_PAGES)]
WRITTEN = [*ON_DISK, *AT_ROOT]
COMMANDS: dict[str, set[str]] = {
    words: {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    for words, command, _ in REFERENCE.commands()
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def shell_lines(text: str) -> Iterator[str]:
    """Yield the commands `swathe ...` of the blocks of a page, comments left out."""
    for kind, block in CODE.findall(text):
        if kind not in ("", "sh", "console"):
            continue
        for line in block.splitlines():
            words = line.partition("  #")[0].strip().removeprefix("$ ")
            if found := re.match(r"(?:\w+=\S* )*(?:\w+=\$\()?(swathe .*)", words):
                yield found[1].rstrip("&) ")


def command_of(words: list[str]) -> tuple[str, list[str]]:
    """Return the longest command that a line begins with, and what follows it."""
    name, rest = "swathe", words[1:]
    options = []
    while rest and (rest[0].startswith("--") or f"{name} {rest[0]}" in COMMANDS):
        word = rest.pop(0)
        if word.startswith("--"):
            # One of `swathe` itself, with its value.
            options += [word, rest.pop(0)] if rest else [word]
        else:
            name += f" {word}"
            if not any(other.startswith(f"{name} ") for other in COMMANDS):
                break
    return name, rest


def test_pages_are_the_same_each_time() -> None:
    assert REFERENCE.pages() == PAGES


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_is_in_the_reference(words: str) -> None:
    _, heading, rest = PAGES["reference/cli.md"].partition(f"\n## {words}\n")
    assert heading, f"{words}: expected a section"
    section = rest.partition("\n## ")[0]
    options = [name for name in COMMANDS[words] if name.startswith("-")]
    missing = [name for name in options if not re.search(rf"{name}(?![\w-])", section)]
    assert not missing


def test_options_have_help() -> None:
    without = {
        f"{words} {each.name}"
        for words, command, _ in REFERENCE.commands()
        for each in command.params
        if not each.help
    }
    assert not without


def test_every_setting_is_in_the_reference() -> None:
    page = PAGES["reference/settings.md"]
    keys = {
        f"{name}.{key.name}"
        for name, section in REFERENCE.sections(Config).items()
        for key in fields(section)
    }
    assert keys == set(re.findall(r"^\| `(\w+\.\w+)` \|", page, re.MULTILINE))


def test_settings_have_their_bounds_in_the_reference() -> None:
    page = PAGES["reference/settings.md"]
    assert "| `limits.share` | number, more than 0, at most 1 | `0.25` |" in page
    assert "| `server.port` | whole number, at least 0, at most 65535 | `8420` |" in page
    assert "| `limits.jobs` | whole number, at least 1 | `20` |" in page


def test_every_setting_is_explained_in_a_guide() -> None:
    portal = (DOCS / "portal.md").read_text()
    workers = (DOCS / "workers.md").read_text()
    missing = [
        f"{name}.{key.name}"
        for name, section in REFERENCE.sections(Config).items()
        for key in fields(section)
        if f"`{name}.{key.name}`" not in portal
        and not (name == "workers" and f"`{key.name}`" in workers)
    ]
    assert not missing


def test_every_option_of_stores_is_explained() -> None:
    guide = (DOCS / "stores.md").read_text().partition("\n## Options\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE)
    assert sorted(rows) == sorted(OPTIONS)
    helps = {
        each.name: each.help for _, command, _ in REFERENCE.commands() for each in command.params
    }
    assert not [name for name in OPTIONS if name not in helps["option"]]


def test_every_variable_is_in_the_reference() -> None:
    """The generator refuses variables without a description; here the code is read otherwise."""
    page = PAGES["reference/environment.md"]
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "crates").rglob("src/**/*.rs")]
    named = {name for path in sources for name in re.findall(r"SWATHE_[A-Z_]+", path.read_text())}
    read = {name for name in named - REFERENCE.PREFIXES if "_TEST" not in name}
    assert len(read) > 10
    assert not {name for name in read if f"| `{name}` |" not in page}


def test_a_variable_without_a_description_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {name: text for name, text in REFERENCE.ENVIRONMENT.items() if name != "SWATHE_TRACE"}
    monkeypatch.setattr(REFERENCE, "ENVIRONMENT", fewer)
    with pytest.raises(ValueError, match="SWATHE_TRACE"):
        REFERENCE.environment_page()


def test_every_public_name_is_in_the_reference() -> None:
    page = PAGES["reference/api.md"]
    names = {f"swathe.{name}" for name in {*swathe.__all__, *dir(swathe)}}
    headings = {heading.strip("`") for heading in HEADING.findall(page)}
    assert names <= headings
    assert {f"swathe.trace.{name}" for name in ("event", "read", "recording")} <= headings
    assert "swathe.errors.SwatheError" in headings


def test_names_of_the_reference_exist() -> None:
    for name in re.findall(r"^::: (\S+)$", PAGES["reference/api.md"], re.MULTILINE):
        module, _, member = name.rpartition(".")
        assert importlib.util.find_spec(module) is not None
        assert hasattr(importlib.import_module(module), member), name


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(path.read_text()):
        target, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        there = (path.parent / target).resolve() if target else path
        generated = PAGES.get(str(there.relative_to(DOCS))) if there.is_relative_to(DOCS) else None
        assert generated is not None or there.exists(), f"{link}: expected a page, found none"
        if anchor:
            text = generated or there.read_text()
            slugs = {slug(heading) for heading in HEADING.findall(text)}
            assert anchor in slugs, f"{link}: expected a heading, found {sorted(slugs)}"


def slug(heading: str) -> str:
    text = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    return re.sub(r"[-\s]+", "-", text)


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_commands_that_are_shown_exist(path: Path) -> None:
    for line in shell_lines(path.read_text()):
        name, rest = command_of(shlex.split(line))
        options = {word for word in rest if re.fullmatch(r"--[a-z][a-z-]*", word)}
        unknown = options - COMMANDS[name] - {"--help"}
        assert not unknown, f"{line}: expected options of {name}"
        assert name != "swathe" or not rest or rest[0].isupper(), f"{line}: expected a command"


@pytest.mark.parametrize("name", ["portal", "worker"])
def test_services_use_options_that_exist(name: str) -> None:
    text = (ROOT / f"deploy/swathe-{name}.service").read_text()
    (line,) = re.findall(r"^ExecStart=/opt/swathe/bin/(swathe .*)$", text, re.MULTILINE)
    command = {"portal": "swathe portal serve", "worker": "swathe pool worker"}[name]
    options = {word for word in line.split() if word.startswith("--")}
    assert options
    assert options <= COMMANDS[command]


def test_shown_commands_are_seen() -> None:
    lines = [line for path in WRITTEN for line in shell_lines(path.read_text())]
    assert len(lines) > 100
    assert command_of(shlex.split("swathe --trace a.ulm cut a.fits --box 1"))[0] == "swathe cut"
    assert command_of(shlex.split("swathe store add a b"))[0] == "swathe store add"


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_modules_that_are_named_exist(path: Path) -> None:
    for name in set(MODULE.findall(path.read_text())):
        if name in ("swathe.toml", "swathe.invalid", "swathe.h", "swathe.pc"):
            continue
        assert exists(name), f"{name}: expected a module or a name in one"


def exists(name: str) -> bool:
    thing: Any = swathe
    for part in name.split(".")[1:]:
        if not hasattr(thing, part):
            try:
                importlib.import_module(f"{thing.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
        thing = getattr(thing, part)
    return True


def test_the_map_of_the_house_is_whole() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE))
    packages = {path.parent.name for path in (ROOT / "python/swathe").glob("*/__init__.py")}
    crates = {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")}
    assert rows == packages | crates


def test_paths_that_contributors_are_told_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = set(PATH.findall(text))
    assert len(paths) > 20
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_every_page_is_in_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = set(re.findall(r"([\w./-]+\.md)\s*$", nav, re.MULTILINE))
    pages = {str(path.relative_to(DOCS)) for path in ON_DISK} | set(PAGES)
    assert listed == pages | set(REFERENCE.ROOT_PAGES)


def test_the_figure_of_costs_is_drawn_by_the_model(tmp_path: Path) -> None:
    made = module_of(DOCS / "pictures.py").cost_figure()
    made.savefig(tmp_path / "costs.png")
    (axes,) = made.axes
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert dots[0] > dots[2], "over the farther link fewer requests are best"
    assert (tmp_path / "costs.png").stat().st_size > 0


def test_pictures_are_small() -> None:
    sizes = [path.stat().st_size for path in (DOCS / "images").glob("*.png")]
    assert len(sizes) == 2
    assert max(sizes) <= 150_000
