"""The pages that are made from the code when the site is built; a hook of MkDocs.

`pages()` returns them, the same text for the same code. `tests/test_docs.py` checks that nothing
is missing in them.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages of the repository that the site also has."""

ENVIRONMENT: dict[str, tuple[str, str]] = {
    "SWATHE_BENCH_TOKEN": (
        "",
        "Token of `swathe bench join`, the same on all hosts of a ramp. Not needed on loopback.",
    ),
    "SWATHE_BUILD_DIR": (
        "`$XDG_CACHE_HOME/swathe/builds`, else `~/.cache/swathe/builds`",
        "Folder for what compilers made of users' sources: 2 GiB at most.",
    ),
    "SWATHE_CACHE_BYTES": (
        "4 GiB",
        "Limit of the block cache, bytes. 0 switches the cache off.",
    ),
    "SWATHE_CACHE_DIR": (
        "`$XDG_CACHE_HOME/swathe/blocks`, else `~/.cache/swathe/blocks`",
        "Folder of the block cache: blocks of objects on servers.",
    ),
    "SWATHE_CALL": ("", "JSON file that tells a compiled algorithm its group."),
    "SWATHE_C_PREFIX": (
        "`/usr/local`, else `/usr`",
        "Folder that libswathe was installed in, for algorithms that are compiled.",
    ),
    "SWATHE_DATABASE": (
        "`catalog.sqlite` in `$XDG_DATA_HOME/swathe`, else in `~/.local/share/swathe`",
        "URL of the catalogue: `sqlite:////data/catalog.sqlite` or "
        "`postgresql+psycopg://user@host/swathe`.",
    ),
    "SWATHE_DEBUG": ("", "1: a command that fails shows its traceback."),
    "SWATHE_GRANULES": ("", "List of granules for a compiled algorithm, a path a line."),
    "SWATHE_INDEX_BYTES": ("1 GiB", "Limit of the index, bytes."),
    "SWATHE_INDEX_DIR": (
        "`$XDG_CACHE_HOME/swathe/index`, else `~/.cache/swathe/index`",
        "Folder of the index: layouts and seek points.",
    ),
    "SWATHE_MAX_CUTOUT_BYTES": ("8 GiB", "Largest cutout, bytes. A larger one is refused."),
    "SWATHE_MEMORY_BYTES": (
        "256 MiB",
        "Limit of the decoded pixels that a process keeps in memory, bytes. 0 switches that off.",
    ),
    "SWATHE_NAMELIST": ("", "Namelists that tell a compiled algorithm its group."),
    "SWATHE_PORTAL": ("", "URL of the portal that `swathe` commands for jobs use."),
    "SWATHE_RESOLVER": (
        "",
        "Service that is asked about names of objects that no list here has: `sesame`, or the URL "
        "of one like it. If it is not set, no name is sent anywhere; `none`: no names. "
        "It is reached through `http_proxy`, `https_proxy` and `no_proxy`.",
    ),
    "SWATHE_IN": ("", "Folder of the inputs of a program in a sandbox, which sets it."),
    "SWATHE_OUT": ("", "Folder for the outputs of a program in a sandbox, which sets it."),
    "SWATHE_STORES": (
        "",
        "File with the stores that libswathe knows by name, as `swathe store export` prints them.",
    ),
    "SWATHE_TOKEN": ("", "Token that is sent to a portal."),
    "SWATHE_TRACE": (
        "",
        "Destination of events, as of `swathe --trace`: a file, `memory:FILE`, `stderr`, `syslog`, "
        "`tcp://HOST:PORT`.",
    ),
    "SWATHE_TRACE_TOKEN": ("", "Token that is sent to a collector of events."),
}
"""Of each variable that the code reads: its default, and its meaning."""
PREFIXES = {"SWATHE_CACHE", "SWATHE_INDEX", "SWATHE_MEMORY"}
"""Beginnings of names that the Rust code completes."""
LARGEST_BOUND = 1e12
"""Larger bounds are not shown: they only keep out nonsense."""
VARIABLE = re.compile(r"\bSWATHE_[A-Z_]*[A-Z]\b")


def pages() -> dict[str, str]:
    """Return the generated pages by their path in `docs/`."""
    return {
        "reference/api.md": api_page(),
        "reference/cli.md": cli_page(),
        "reference/settings.md": settings_page(),
        "reference/environment.md": environment_page(),
    }


def variables_read() -> set[str]:
    """Return the `SWATHE_` variables that the code names, tests left out."""
    sources = [*ROOT.glob("python/**/*.py"), *ROOT.glob("crates/**/*.rs")]
    texts = (
        path.read_text()
        for path in sources
        if "tests" not in path.relative_to(ROOT).parts and not path.name.startswith("test")
    )
    names = {name for text in texts for name in VARIABLE.findall(text)}
    return {name for name in names - PREFIXES if not name.startswith("SWATHE_TEST_")}


def environment_page() -> str:
    """Return the page of the environment variables.

    Raises:
        ValueError: If the code reads others than are described here.
    """
    read, described = variables_read(), set(ENVIRONMENT)
    if read != described:
        raise ValueError(
            f"environment variables: expected those that the code reads, found "
            f"{sorted(read - described)} without a description and "
            f"{sorted(described - read)} that nothing reads; mend ENVIRONMENT in docs/reference.py"
        )
    rows = [(f"`{name}`", *texts) for name, texts in sorted(ENVIRONMENT.items())]
    return "\n".join(
        [
            "# Environment variables",
            "",
            "You can set these variables for any command, and for Python. Options and arguments "
            "override them.",
            "",
            *_table(("variable", "default", "meaning"), rows),
            "",
            "Credentials of buckets are listed in [Stores](../stores.md#credentials).",
            "",
        ]
    )


def settings_page() -> str:
    """Return the page of the portal's settings."""
    from swathe.core.docstrings import attributes_of, summary_of
    from swathe.portal.config import Config

    lines = [
        "# Settings of a portal",
        "",
        "You can write these keys into the file of `swathe portal serve --config FILE`, a TOML "
        "file. [The portal](../portal.md#settings) and [Workers](../workers.md) explain how to use "
        "them.",
        "",
    ]
    for name, section in sections(Config).items():
        lines += [f"## [{name}{'.USER' if name == 'shares' else ''}]", "", summary_of(section), ""]
        meanings, types_ = attributes_of(section), get_type_hints(section)
        bounded = get_type_hints(section, include_extras=True)
        rows = [
            (
                f"`{name}.{each.name}`",
                _type_text(types_[each.name]) + _bounds_text(bounded[each.name]),
                _default_text(each),
                meanings.get(each.name, "see above"),
            )
            for each in dataclasses.fields(section)
        ]
        lines += [*_table(("key", "type", "default", "meaning"), rows), ""]
    return "\n".join(lines)


def sections(config: type) -> dict[str, type]:
    """Return the sections of the settings by name; one per user is that of a user."""
    hints = get_type_hints(config)
    kinds = {each.name: hints[each.name] for each in dataclasses.fields(config)}
    return {
        name: kind if isinstance(kind, type) else get_args(kind)[1] for name, kind in kinds.items()
    }


def _type_text(hint: Any) -> str:
    """Return a type in the words of TOML."""
    if types.NoneType in get_args(hint):
        return _type_text(next(each for each in get_args(hint) if each is not types.NoneType))
    if get_origin(hint) in (types.UnionType, Union):
        return " or ".join(_type_text(each) for each in get_args(hint))
    if choices := [each for each in get_args(hint) if isinstance(each, str)]:
        return " or ".join(f'`"{each}"`' for each in choices)
    if str(hint).startswith(("tuple", "list")):
        return "list of texts"
    words = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}
    return words[hint]


def _bounds_text(hint: Any) -> str:
    """Return the bounds of a number."""
    schema = TypeAdapter(hint).json_schema()
    words = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}
    shown = [key for key in words if schema.get(key, inf) < LARGEST_BOUND]
    return "".join(f", {words[key]} {schema[key]:g}" for key in shown)


def _default_text(each: dataclasses.Field[Any]) -> str:
    """Return a default as TOML has it; nothing for one that depends on the machine or is empty."""
    default = each.default
    if default is dataclasses.MISSING:
        return "see [environment](environment.md)"
    if default is None or default == "":
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`[{', '.join(map(repr, default))}]`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def cli_page() -> str:
    """Return the page of the commands, each with its arguments and options."""
    from swathe.cli.app import EXIT_CODES
    from swathe.core import angles
    from swathe.core.quantities import SIZE_FORMS, TIME_FORMS

    lines = [
        "# Commands",
        "",
        "You find here each command with all its options. `swathe COMMAND --help` shows the same.",
        "",
        f"- Times: {TIME_FORMS}.",
        f"- Sizes of data: {SIZE_FORMS}.",
        f"- Sizes on the sky: {_markdown(angles.SIZE_FORMS)}.",
        "- `--json` prints the result as one line of JSON, and an error, too: `error`, `kind` and "
        "`exit_code`. Commands that run until Ctrl-C print their address, or each event.",
        "",
        EXIT_CODES,
        "",
    ]
    for words, command, context in commands():
        lines += [f"## {words}", "", _markdown(command.help or ""), ""]
        usage = " ".join(command.collect_usage_pieces(context))
        lines += ["```", f"{words} {usage}", "```", ""]
        records = [each.get_help_record(context) for each in command.params]
        rows = [(f"`{names}`", _markdown(text)) for names, text in filter(None, records)]
        if rows:
            lines += [*_table(("option", "meaning"), rows), ""]
    return "\n".join(lines)


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Yield each command that is shown: its words, the command, and a context to ask it in."""
    import typer

    from swathe.cli.app import app

    root = typer.main.get_command(app)
    context_class = root.context_class
    yield from _below("swathe", root, context_class(root, info_name="swathe"))


def _below(words: str, command: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    yield words, command, context
    if not hasattr(command, "list_commands"):
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if not inner.hidden:
            inner_context = type(context)(inner, info_name=name, parent=context)
            yield from _below(f"{words} {name}", inner, inner_context)


def api_page() -> str:
    """Return the page of the public names of `swathe`."""
    import swathe

    lines = [
        "# Python",
        "",
        "You find here each public name of `swathe`: its arguments, its result, its errors.",
        "",
    ]
    names = sorted(set(swathe.__all__) - {"__version__"}, key=str.lower)
    modules = [name for name in names if inspect.ismodule(getattr(swathe, name))]
    for name in names:
        if name not in modules:
            lines += [f"## swathe.{name}", "", *_directive(getattr(swathe, name), name), ""]
    for name in modules:
        module = getattr(swathe, name)
        lines += [f"## swathe.{name}", "", (inspect.getdoc(module) or "").split("\n\n")[0], ""]
        for member in public_members(module):
            text = f"swathe.{name}.{member}"
            lines += [f"### {text}", "", *_directive(getattr(module, member), text), ""]
    lines += ["## `swathe.__version__`", "", "The version, a text.", ""]
    return "\n".join(lines)


def public_members(module: types.ModuleType) -> list[str]:
    """Return the functions and classes that a module offers."""
    names = getattr(module, "__all__", None) or [
        name
        for name, each in vars(module).items()
        if getattr(each, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    return [name for name in names if callable(getattr(module, name))]


def _directive(thing: Any, name: str) -> list[str]:
    """Return the lines by which mkdocstrings documents a class or function."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        raise ValueError(f"{name}: expected a class or a function, found {type(thing).__name__}")
    return [f"::: {thing.__module__}.{thing.__qualname__}"]


def _markdown(text: str) -> str:
    """Return a help text so that Markdown shows its characters as they are."""
    return re.sub(r"([\\`*_<>\[\]|$])", r"\\\1", text)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    cells = [[cell.replace("\n", " ") for cell in row] for row in rows]
    for row in cells:
        row[0] = row[0].replace("|", "\\|")
    lines = [head, ["---"] * len(head), *cells]
    return ["| " + " | ".join(line) + " |" for line in lines]


# What MkDocs calls.


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and those of the repository."""
    from mkdocs.structure.files import File

    texts = pages() | {name: (ROOT / name).read_text() for name in ROOT_PAGES}
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let links between `docs/` and the pages of the repository lead to each other in the site."""
    if page.file.src_uri in ROOT_PAGES:
        return markdown.replace("](docs/", "](")
    for name in ROOT_PAGES:
        markdown = markdown.replace(f"](../{name}", f"]({name}")
        markdown = markdown.replace(f"](../../{name}", f"](../{name}")
    return markdown
