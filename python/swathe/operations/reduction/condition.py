"""Conditions on arrays, such as `qa & 3 == 0`: comparisons and arithmetic, and nothing else.

A condition comes from a user, so it is never executed as Python: its tree is walked, and a node
that is not listed here is refused.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

LONGEST = 500
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Invert: operator.invert,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


class Condition:
    """A condition on the elements of arrays.

    Attributes:
        text: the condition as written.
        names: names of the arrays in it.
    """

    def __init__(self, text: str) -> None:
        """Parse and check a condition.

        Raises:
            OptionError: If it is longer than 500 characters, or has more than comparisons, numbers,
                names of arrays, and `& | ^ ~ << >> + - * / %`.
        """
        self.text = text
        if len(text) > LONGEST:
            raise OptionError(f"where: expected at most {LONGEST} characters, found {len(text)}")
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
            self._check(self._tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, OptionError):
                raise
            raise self._fault(f"{text!r:.60}") from error
        self.names = frozenset(
            node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)
        )
        if not self.names:
            raise self._fault("no name of an array")

    def _fault(self, what: str) -> OptionError:
        return OptionError(
            "where: expected comparisons of arrays and numbers, such as 'qa & 3 == 0', joined as "
            f"'(a > 1) & (b < 2)', found {what}"
        )

    def _check(self, node: ast.AST) -> None:
        match node:
            case ast.Name():
                return
            case ast.Constant(value=value) if type(value) in (int, float):
                if isinstance(value, int) and value > np.iinfo(np.int64).max:
                    raise self._fault("a number beyond 64 bits")
                return
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                parts = [left, right]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
                parts = [operand]
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
                parts = [left, right]
            case ast.Compare(ops=[_, _, *_]):
                raise self._fault("two comparisons without parentheses around each")
            case _:
                raise self._fault(f"{ast.unparse(node)!r:.60}")
        for part in parts:
            self._check(part)

    def mask(self, arrays: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return where it is true.

        Args:
            arrays: an array for each of its names; shapes broadcast.

        Raises:
            OptionError: If its value is not true or false, or an operator does not suit a type.
        """
        try:
            with np.errstate(all="ignore"):
                value = np.asarray(self._value(self._tree, arrays))
        except (TypeError, OverflowError, ValueError) as error:
            raise OptionError(f"where {self.text!r:.60}: {error}") from error
        if value.dtype != bool:
            raise self._fault(f"a value of type {value.dtype} in {self.text!r:.60}")
        return value

    def _value(self, node: ast.AST, arrays: dict[str, NDArray[Any]]) -> Any:
        match node:
            case ast.Name(id=name):
                return arrays[name]
            case ast.Constant(value=int(value)):
                return np.int64(value)  # of 64 bits: `1 << 10**9` needs no memory
            case ast.Constant(value=value):
                return value
            case ast.BinOp(left=left, op=op, right=right):
                return OPERATORS[type(op)](self._value(left, arrays), self._value(right, arrays))
            case ast.UnaryOp(op=op, operand=operand):
                return OPERATORS[type(op)](self._value(operand, arrays))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return OPERATORS[type(op)](self._value(left, arrays), self._value(right, arrays))
        raise self._fault(type(node).__name__)
