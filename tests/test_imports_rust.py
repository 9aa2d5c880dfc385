"""Crates depend on crates below them only, and no module takes part in a circle of imports.

A module and those inside it may use each other, as a file and its parts do. Of modules beside each
other, at every level, the imports must have an order.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).resolve().parents[1] / "crates"

#: From the bottom to the top: a crate knows those before it, and may be known by those after it.
ORDER = (
    "array",
    "plan",
    "regrid",
    "run",
    "sandbox",
    "trace",
    "codecs",
    "layout",
    "fits",
    "chunk-index",
    "store-api",
    "disk-cache",
    "net",
    "cache",
    "store",
    "stripe",
    "block-server",
    "engine",
    "python",
    "capi",
)

#: What opens connections: readers of bytes do without.
NETWORK = {"hyper", "hyper-util", "object_store", "reqwest", "rustls", "tokio"}

Module = tuple[str, ...]


def _dependencies(crate: str) -> set[str]:
    """Return the names of what a crate is built with, without what only its tests need."""
    return set(tomllib.loads((CRATES / crate / "Cargo.toml").read_text())["dependencies"])


def _own(names: Iterable[str]) -> set[str]:
    return {name.removeprefix("swathe-") for name in names if name.startswith("swathe-")}


def test_all_crates_have_a_place_in_the_order() -> None:
    assert sorted(ORDER) == sorted(path.name for path in CRATES.iterdir() if path.is_dir())


@pytest.mark.parametrize("crate", ORDER)
def test_crates_depend_on_crates_below_them(crate: str) -> None:
    assert _own(_dependencies(crate)) <= set(ORDER[: ORDER.index(crate)])


def test_the_engine_is_built_without_a_network() -> None:
    seen: set[str] = set()
    waiting = ["engine"]
    while waiting:
        crate = waiting.pop()
        if crate not in seen:
            seen.add(crate)
            assert not NETWORK & _dependencies(crate), crate
            waiting.extend(_own(_dependencies(crate)))
    assert {"store-api", "codecs", "fits", "plan"} <= seen


def _modules(source: Path) -> dict[Module, str]:
    """Return the modules of a crate and their texts, without tests."""
    modules = {}
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1].startswith("test"):
            continue
        name = () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts
        text = path.read_text().split("#[cfg(test)]\nmod tests")[0]
        text = re.sub(r"#\[cfg\(test\)\]\s*(pub(\([a-z]+\))? )?(use|mod) [^;{]*;", "", text)
        modules[name] = re.sub(r"//.*", "", text)
    return modules


def _expanded(tree: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a `use` tree: `a::{b, c::d}` is a::b and a::c::d."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path = re.sub(r"\s+as\s+\w+$", "", tree)
        yield tuple(part for part in path.split("::") if part)
        return
    before = tuple(part for part in head.strip().split("::") if part)
    depth, start, inside = 0, 0, rest.rpartition("}")[0]
    for at, char in enumerate(inside + ","):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if inside[start:at].strip():
                for inner in _expanded(inside[start:at]):
                    yield before + inner
            start = at + 1


class _Crate:
    def __init__(self, source: Path) -> None:
        self.modules = _modules(source)
        uses = r"^\s*(?:pub(?:\([a-z]+\))? )?use ([^;]*);"
        self.uses = {
            module: [path for tree in re.findall(uses, text, re.M) for path in _expanded(tree)]
            for module, text in self.modules.items()
        }

    def _absolute(self, module: Module, path: tuple[str, ...]) -> Module | None:
        """Return a path from the root of the crate; None for one of another crate."""
        base = module
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return module + path[1:]
        if path[0] == "super":
            while path and path[0] == "super":
                base, path = base[:-1], path[1:]
            return base + path
        return module + path if module + path[:1] in self.modules else None

    def _module_of(self, path: Module, seen: frozenset[Module] = frozenset()) -> Module:
        """Return the module in which what a path names is defined."""
        module = path
        while module not in self.modules:
            module = module[:-1]
        rest = path[len(module) :]
        if rest and path not in seen:
            for used in self.uses[module]:
                target = self._absolute(module, used)
                if target is not None and used[-1] in (rest[0], "*") and target != path:
                    full = (target[:-1] + rest) if used[-1] == "*" else target + rest[1:]
                    found = self._module_of(full, seen | {path})
                    if used[-1] != "*":
                        return found
        return module

    def imports(self) -> Iterator[tuple[Module, Module]]:
        for module, text in self.modules.items():
            inline = re.findall(r"(?<![\w:])((?:crate|super)(?:::\w+)+)", text)
            paths = [*self.uses[module], *(tuple(path.split("::")) for path in inline)]
            for path in paths:
                target = self._absolute(module, path)
                if target is not None:
                    yield module, self._module_of(target)


def _siblings(crate: _Crate) -> dict[Module, dict[str, set[str]]]:
    """Return, by the module that holds them, which of its parts use which others."""
    graph: dict[Module, dict[str, set[str]]] = {}
    for user, used in crate.imports():
        depth = 0
        while depth < min(len(user), len(used)) and user[depth] == used[depth]:
            depth += 1
        if depth < min(len(user), len(used)):
            level = graph.setdefault(user[:depth], {})
            level.setdefault(user[depth], set()).add(used[depth])
    return graph


@cache
def _circle(source: Path) -> str:
    """Return a circle of imports in a crate, if there is one."""
    for holder, graph in _siblings(_Crate(source)).items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return "::".join(["crate", *holder]) + ": " + " <- ".join(error.args[1])
    return ""


@pytest.mark.parametrize("crate", ORDER)
def test_no_modules_import_each_other(crate: str) -> None:
    assert _circle(CRATES / crate / "src") == ""


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\npub use a::A;\n")
    (tmp_path / "a.rs").write_text("use crate::b::{B, C};\npub struct A;\n")
    (tmp_path / "b.rs").write_text("pub struct B;\npub struct C;\n")
    assert _circle(tmp_path) == ""
    _circle.cache_clear()
    # By the name that the root gives it.
    (tmp_path / "b.rs").write_text("use std::fmt;\nuse super::A;\npub struct B;\n")
    assert _circle(tmp_path) in ("crate: a <- b <- a", "crate: b <- a <- b")


def test_parts_of_a_module_may_use_it(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nuse a::part;\npub struct Root;\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "a.rs").write_text("pub mod part;\nuse part::Part;\npub struct A;\n")
    (tmp_path / "a" / "part.rs").write_text("use super::A;\nuse crate::Root;\npub struct Part;\n")
    assert _circle(tmp_path) == ""
