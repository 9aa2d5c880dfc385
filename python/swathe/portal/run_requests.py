"""Settings of runs that users send: read within limits, and predicted."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from swathe.core.errors import LimitError, NoSuchStoreError, OptionError, SettingsError
from swathe.core.toml_settings import parse_toml
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.planning.run_plan import plan_run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from swathe.catalog import Catalog
    from swathe.core.errors import SwatheError
    from swathe.runs.planning.run_plan import RunPlan

MOST_BYTES = 1 << 18
"""Length of settings in bytes, at most."""
MOST_ARRAYS = 200
MOST_CHARACTERS = 1000
"""Characters of one text in settings, and values of one list, at most."""
MOST_STEPS = 5_000
"""Steps of a search for stores of `auto`: less than a second for some 20 arrays."""
AT_ONCE = 2
"""Predictions at the same time, of all users: they compute."""
WAIT_S, RETRY_S = 10.0, 5
INVALID = (SettingsError, NoSuchStoreError, OptionError, LimitError)
"""Errors of settings, of stores that they name, and of the room and time that they need."""
KEYS = frozenset(each.name for each in fields(ArraySettings))
UNKNOWN_KEY = re.compile(r"unknown key in \[arrays\.([^]]*)\]: '(\w*)'")


class Predictions:
    """Predictions of runs, a few at the same time."""

    def __init__(self) -> None:
        """Begin without any."""
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    def plan(self, values: Mapping[str, Any], catalog: Catalog) -> RunPlan:
        """Return where the arrays of a run go, and what that costs: as `swathe run predict` does.

        Args:
            values: the settings as in a file `run.toml`.
            catalog: the catalogue of the stores.

        Raises:
            SettingsError, NoSuchStoreError, OptionError: If they are invalid.
            LimitError: If they exceed a limit, there is too little room, or too many predictions
                are made at the same time.
        """
        arrays = values.get("arrays")
        if isinstance(arrays, dict) and len(arrays) > MOST_ARRAYS:
            raise LimitError(f"arrays: expected at most {MOST_ARRAYS}, found {len(arrays)}")
        _check_lengths(values, "the run")
        with self._turn():
            plan = plan_run(values, catalog=catalog, most_steps=MOST_STEPS)
        if not plan.is_exact:
            raise LimitError(
                f"the run: expected a choice of stores within {MOST_STEPS} steps, found more for "
                "arrays with location auto; name the stores of some of them"
            )
        return plan

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._slots.acquire(timeout=WAIT_S):
            raise LimitError("too many runs are being predicted; try again soon", RETRY_S)
        try:
            yield
        finally:
            self._slots.release()


def _check_lengths(value: Any, label: str) -> None:
    """Check texts and lists, whose parsers take time that grows faster than their length."""
    if isinstance(value, dict):
        for key, each in value.items():
            _check_lengths(key, label)
            _check_lengths(each, key if label == "the run" else f"{label}.{key}")
    elif isinstance(value, str | list):
        if len(value) > MOST_CHARACTERS:
            what = "characters" if isinstance(value, str) else "values"
            raise LimitError(
                f"{label}: expected at most {MOST_CHARACTERS} {what}, found {len(value)}"
            )
        for each in value if isinstance(value, list) else ():
            _check_lengths(each, label)


def parse_run(content: bytes, label: str, *, is_json: bool = False) -> dict[str, Any]:
    """Parse the settings of a run; their values are not checked.

    Args:
        content: a file `run.toml`, or the same as JSON.
        label: what it is, for messages.
        is_json: whether it is JSON.

    Raises:
        SettingsError: If it is neither.
        LimitError: If it is too long.
    """
    if len(content) > MOST_BYTES:
        raise LimitError(f"{label}: expected at most {MOST_BYTES} bytes, found more")
    if not is_json:
        return parse_toml(content, label)
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{label}: is not valid JSON: {str(error)[:100]}") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{label}: expected an object of names and values")
    return values


def setting_of(error: SwatheError, names: Collection[str]) -> tuple[str | None, str | None]:
    """Return the array and the setting that an error of settings is about; `None` if of none.

    Args:
        error: one that `Predictions.plan` raised; its message begins with the key.
        names: names of the arrays.
    """
    text = str(error)
    if match := UNKNOWN_KEY.match(text):
        return match[1], match[2]
    # A name may have dots, and begin with another one.
    for name in sorted(names, key=len, reverse=True):
        rest = text.removeprefix(f"arrays.{name}")
        if rest == text or rest[:1] not in (".", ":"):
            continue
        key = re.match(r"\.(\w+)", rest)
        if key is not None and key[1] in KEYS:
            return name, key[1]
        # Only its place is refused for the array as a whole.
        return name, "location" if isinstance(error, LimitError) else None
    key = re.match(r"(?:run\.)?(name|iterations|ranks|compute_s|arrays)\b", text)
    return None, key[1] if key is not None else None
