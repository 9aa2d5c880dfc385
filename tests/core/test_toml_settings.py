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


@pytest.mark.parametrize(("kind", "bits"), [(float, 2000), (float, 50_000), (str, 50_000)])
def test_numbers_that_are_too_large_are_told(kind: Any, bits: int) -> None:
    with pytest.raises(SettingsError, match=r"part\.key: expected (a number|text), found"):
        value("part.key", kind, 1 << bits)
