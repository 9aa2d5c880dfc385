"""Files of settings that are none, and numbers that are too large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swathe.core.errors import SettingsError
from swathe.core.toml_settings import read_toml, value


@pytest.mark.parametrize("text", ["a = ", "a = " + "[" * 100_000, "a = " + "9" * 5000, "\0"])
def test_what_is_no_toml_is_an_error_of_settings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match="is not valid TOML"):
        read_toml(path)


def test_a_file_that_is_long_or_without_end_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.symlink_to("/dev/zero")
    with pytest.raises(SettingsError, match="expected a regular file, found another"):
        read_toml(path)
    path.unlink()
    path.write_bytes(b" " * (1 << 20) + b" ")
    with pytest.raises(SettingsError, match="expected at most 1 MiB, found more"):
        read_toml(path)


LONG = ".".join("a" * 101)
QUOTED = " . ".join(["'a.b'", '"c"'] * 51)


@pytest.mark.parametrize(
    "line",
    [f"{LONG} = 1", f"[{LONG}]", f"[[ {LONG} ]]", f"a = {{ {LONG} = 1 }}", f"{QUOTED} = 1"],
)
@pytest.mark.parametrize(
    "before",
    ["", 'a1 = "\\""', "a1 = '\\'", 'a1 = """\n\\""" "\n"""""', "a1 = '''\n'''''", '# """'],
)
def test_keys_of_many_parts_are_refused(tmp_path: Path, before: str, line: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"{before}\n{line}\n")
    at = before.count("\n") + 2
    with pytest.raises(
        SettingsError, match=rf"settings\.toml, line {at}: expected keys of at most"
    ):
        read_toml(path)


def test_dots_of_texts_and_comments_are_no_keys(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    dots = "." * 200
    texts = [f'"{dots}"', f"'{dots}'", f'"""\n{dots}\n"""', f"'''\n{dots}\n'''", f'"\\"{dots}"']
    lines = [f"k{number} = {text} # {dots}" for number, text in enumerate(texts)]
    lines += [f'"{dots}" = [{", ".join(["1.5"] * 200)}]', ".".join("b" * 100) + " = 1"]
    path.write_text("\n".join(lines))
    assert read_toml(path)["k3"] == f"{dots}\n"


@pytest.mark.parametrize(
    "text", ['"""\n' * 9, "'''\n\"" * 9, '\\"""\n' * 100_000, 'a="""' + "\\" * 9]
)
def test_texts_without_end_are_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match="is not valid TOML"):
        read_toml(path)


@pytest.mark.parametrize(("kind", "bits"), [(float, 2000), (float, 50_000), (str, 50_000)])
def test_numbers_that_are_too_large_are_told(kind: Any, bits: int) -> None:
    with pytest.raises(SettingsError, match=r"part\.key: expected (a number|text), found"):
        value("part.key", kind, 1 << bits)
