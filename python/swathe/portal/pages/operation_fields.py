"""Fields of the form that subscribes an operation on granules, as `reduce`, to a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

from swathe.algorithms.definition import Algorithm, GranuleInput, Parameter
from swathe.core.errors import OptionError
from swathe.core.grouping import GROUPS, GroupBy
from swathe.operations.operation import ReducingOperation
from swathe.operations.registry import operations
from swathe.portal.pages.subscription_fields import SubscriptionForm

GROUP = "group"
"""Parameter of the form that says how granules form groups; it is no option of the operation."""
GROUP_HELP = "Granules that make one result: each alone, those of a day, of an orbit, or all"


def granule_operation(name: str) -> ReducingOperation | None:
    """Return the operation on granules of a name; `None` if there is none."""
    operation = operations().get(name)
    return operation if isinstance(operation, ReducingOperation) else None


@dataclass
class OperationForm(SubscriptionForm):
    """A form that is filled in, whose parameters are the options of an operation."""

    own: ClassVar[tuple[str, ...]] = tuple(
        each for each in SubscriptionForm.own if each not in ("version", "register_as")
    )

    @classmethod
    def of_operation(cls, operation: ReducingOperation, values: Mapping[str, Any]) -> Self:
        """Return the form of an operation with values of a request."""
        options = {
            each.name: Parameter("string", default=str(each.default), description=each.help)
            for each in operation.options
        }
        group = Parameter("string", enum=GROUPS, default=GROUPS[0], description=GROUP_HELP)
        inputs = {"granules": GranuleInput()}
        return cls.of(Algorithm(operation.name, "", inputs, {}, {**options, GROUP: group}), values)

    def _version(self) -> str:
        return ""

    def _group(self) -> GroupBy | None:
        return cast("GroupBy | None", self.parameters().get(GROUP))

    def _options(self) -> Mapping[str, Any]:
        operation = granule_operation(self.algorithm.name)
        assert operation is not None  # the form is of one
        values = self.parameters()
        options = {}
        for option in operation.options:
            try:
                options[option.name] = option.read(values.get(option.name, ""))
            except OptionError as error:
                text = str(error).removeprefix(f"{option.name}: ")
                self.faults.setdefault(f"p-{option.name}", text)
        return options
