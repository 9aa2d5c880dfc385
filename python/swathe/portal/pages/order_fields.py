"""Fields of the form that orders an algorithm, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from swathe.algorithms.parameters import parse_value, requirement_of
from swathe.core.errors import AlgorithmError, DatasetError
from swathe.core.value_errors import short_text
from swathe.datasets.search_times import read_open_times
from swathe.files.targets.bounds import BOUNDS
from swathe.jobs.orders import Order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.algorithms.definition import Algorithm, Parameter, Scalar

OWN = ("collection", "time_from", "time_to", *BOUNDS, "name", "register_as")
LONGEST_FIELD = 1000
PLACE = "place"
"""Name of the error of the four fields of the box."""


@dataclass
class OrderForm:
    """A form that is filled in.

    Attributes:
        algorithm: the algorithm.
        fields: texts by the names of the fields: those of `own`, `p-` with the name of a
            parameter, `f-` with that of a file.
        faults: error of a field by its name.
    """

    own: ClassVar[tuple[str, ...]] = OWN
    algorithm: Algorithm
    fields: dict[str, str]
    faults: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, algorithm: Algorithm, values: Mapping[str, Any]) -> Self:
        """Return the form with values of a request; other names are left out.

        Of a text that is too long the beginning is kept, and that is an error of its field. So is
        the character NUL, which no name of a file or dataset has.
        """
        parameters = algorithm.parameters
        defaults = dict.fromkeys(cls.own, "") | {f"f-{name}": "" for name in algorithm.files}
        defaults |= {f"p-{name}": default_text(each) for name, each in parameters.items()}
        defaults["collection"] = algorithm.granules[1].collection
        texts = {name: str(values.get(name, first)).strip() for name, first in defaults.items()}
        faults = {
            name: f"expected at most {LONGEST_FIELD} characters, found {len(text)}"
            for name, text in texts.items()
            if len(text) > LONGEST_FIELD
        }
        faults |= {
            name: f"expected no character NUL, found {short_text(text)}"
            for name, text in texts.items()
            if "\0" in text
        }
        for name in faults.keys() & set(BOUNDS):
            faults[PLACE] = faults.pop(name)
        return cls(algorithm, {name: text[:LONGEST_FIELD] for name, text in texts.items()}, faults)

    def time(self) -> tuple[str | None, str | None]:
        """Return first and last time; `None`: open."""
        time = self.fields["time_from"] or None, self.fields["time_to"] or None
        try:
            read_open_times(time)
        except DatasetError as error:
            self.faults["time_from" if time[0] else "time_to"] = str(error)
        return time

    def bounds(self) -> tuple[float, float, float, float] | None:
        """Return the box in degrees; `None`: anywhere."""
        texts = [self.fields[name] for name in BOUNDS]
        if not any(texts):
            return None
        try:
            west, south, east, north = map(float, texts)
        except ValueError:
            self.faults[PLACE] = "expected west, south, east and north in degrees, or none of them"
            return None
        if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90):
            self.faults[PLACE] = (
                "expected west and east within 180 degrees of 0, south and north within 90, and "
                "south below north"
            )
            return None
        return west, south, east, north

    def parameters(self) -> dict[str, Scalar]:
        """Return the values of the parameters; those that are invalid are in `faults`."""
        values = {}
        for name, each in self.algorithm.parameters.items():
            text = self.fields[f"p-{name}"]
            try:
                if text or each.type == "string":
                    values[name] = parse_value(name, each, text)
                elif each.default is None:
                    self.faults[f"p-{name}"] = f"expected {requirement_of(each)}, found none"
            except AlgorithmError as error:
                self.faults.setdefault(f"p-{name}", str(error).removeprefix(f"{name}: "))
        return values

    def files(self) -> dict[str, str]:
        """Return the files of other inputs; those that are missing are in `faults`."""
        files = {name: self.fields[f"f-{name}"] for name in self.algorithm.files}
        for name, file in files.items():
            if not file:
                self.faults[f"f-{name}"] = "expected STORE:path, found none"
        return files

    def takes(self, collection: str) -> bool:
        """Check whether the algorithm reads a dataset of this name."""
        return self.algorithm.granules[1].collection in ("", collection)

    def collection(self) -> str:
        """Return the name of the dataset."""
        name = self.fields["collection"]
        if not name:
            self.faults["collection"] = "expected the name of a dataset, found none"
        elif not self.takes(name):
            self.faults["collection"] = (
                f"expected {self.algorithm.granules[1].collection}, as {self.algorithm.label} "
                f"declares, found {short_text(name)}"
            )
        return name

    def order(self) -> Order:
        """Return the order; what is wrong with it is in `faults`."""
        return Order(
            self.algorithm.label,
            self.collection(),
            self.time(),
            self.bounds(),
            self.parameters(),
            self.files(),
            self.fields.get("register_as", ""),
        )


def default_text(parameter: Parameter) -> str:
    """Return the default of a parameter as its field shows it; empty without one."""
    default = parameter.default
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default is None else str(default)
