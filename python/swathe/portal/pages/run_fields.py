"""The fields of the form for a run: from its settings, and back to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swathe.core.errors import LimitError, SettingsError
from swathe.core.toml_settings import value_error
from swathe.portal.run_requests import MOST_ARRAYS, parse_run

if TYPE_CHECKING:
    from swathe.runs.planning.run_plan import RunPlan

OWN_KEYS = {"name": "", "iterations": "120", "ranks": "1", "compute_s": ""}
"""Fields of the run, with their values in an empty form."""
ARRAY_KEYS = {
    "mode": "create",
    "dtype": "f4",
    "pattern": "",
    "shape": "",
    "location": "default",
    "every": "1",
}
"""Fields of an array, with what a file without them means."""
EXAMPLE = """\
name = "astro3d"
iterations = 120
ranks = 8
compute_s = 4.5

[arrays.temp]
shape = [128, 128, 128]
every = 6
pattern = "BBB"
location = "auto"
purpose = "analyse"

[arrays.vr_temp]
shape = [128, 128, 128]
dtype = "u1"
every = 6
pattern = "BBB"
location = "auto"
purpose = "visualise"

[arrays.restart]
shape = [128, 128, 128]
dtype = "f8"
every = 24
pattern = "BBB"
location = "auto"
mode = "overwrite"
purpose = "checkpoint"
"""
"""Three arrays of the application astro3d, each for something else."""


@dataclass
class RunForm:
    """A form that is filled in.

    Attributes:
        text: the settings as they were read; keys without a field stay as they are there.
        fields: contents of the fields of the run.
        rows: contents of the fields of each array, with its name.
        command: command of the script.
        choice: which of the commands of the operator.
        action: the button.
        error: why there is no prediction.
        fault: array and setting that the error is about.
        plan: the prediction.
    """

    text: str = ""
    fields: dict[str, str] = field(default_factory=lambda: dict(OWN_KEYS))
    rows: list[dict[str, str]] = field(default_factory=list)
    command: str = ""
    choice: str = ""
    action: str = "predict"
    error: str = ""
    fault: tuple[str | None, str | None] = (None, None)
    plan: RunPlan | None = None

    @property
    def is_at_field(self) -> bool:
        """Whether the error is about one of the fields."""
        array, key = self.fault
        if array is None:
            return key in OWN_KEYS
        return key in ARRAY_KEYS and any(row["name"] == array for row in self.rows)

    @classmethod
    def of_text(cls, text: str) -> RunForm:
        """Return the form of settings.

        Raises:
            SettingsError, LimitError: If they cannot be read.
        """
        values = parse_run(text.encode("utf-8", "surrogatepass"), "the settings")
        arrays = values.get("arrays", {})
        if not isinstance(arrays, dict) or not arrays:
            raise SettingsError("arrays: expected a section [arrays.NAME] for each array")
        for name, array in arrays.items():
            if not isinstance(array, dict):
                raise value_error(f"arrays.{name}", f"a section [arrays.{name}]", array)
        if len(arrays) > MOST_ARRAYS:
            raise LimitError(f"arrays: expected at most {MOST_ARRAYS}, found {len(arrays)}")
        fields = {key: _field_text(values.get(key, "")) for key in OWN_KEYS}
        rows = [
            {
                "name": name,
                **{key: _field_text(array.get(key, of)) for key, of in ARRAY_KEYS.items()},
            }
            for name, array in arrays.items()
        ]
        return cls(text, fields | {"ranks": fields["ranks"] or "1"}, rows)

    def values(self) -> dict[str, Any]:
        """Return the settings: what was read, with what the fields say.

        Raises:
            SettingsError, LimitError: If the text cannot be read.
        """
        values = parse_run(self.text.encode("utf-8", "surrogatepass"), "the settings")
        numbers: dict[str, type[int] | type[float]] = {
            "iterations": int,
            "ranks": int,
            "compute_s": float,
        }
        for key, text in self.fields.items():
            values[key] = _number(text, numbers[key]) if key in numbers else text.strip()
        if not self.fields["compute_s"].strip():
            del values["compute_s"]
        arrays = values.get("arrays", {})
        for row in self.rows:
            array = arrays.get(row["name"]) if isinstance(arrays, dict) else None
            if not isinstance(array, dict):
                raise SettingsError(
                    f"arrays: expected one of the settings, found {row['name']!r:.60}"
                )
            array |= {key: row[key].strip() for key in ("mode", "dtype", "pattern")}
            array["shape"] = _numbers(row["shape"])
            array["every"] = _number(row["every"], int)
            array["location"] = [each.strip() for each in row["location"].split(",")]
        return values


def _field_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(text: str, kind: type[int] | type[float]) -> int | float | str:
    """Return the number of a field, or its text if it is none: the error is about that."""
    try:
        return kind(text)
    except ValueError:
        return text.strip()


def _numbers(text: str) -> list[int | float | str] | str:
    """Return the numbers of a field, separated by commas; its text if one of them is none."""
    numbers = [_number(each, int) for each in text.split(",")]
    return text.strip() if any(isinstance(each, str) for each in numbers) else numbers
