"""Find the arguments of the function `run` in a source, without importing it.

It is called in a confined process: Python's parser may end a process for some sources.
"""

from __future__ import annotations

import ast
import json
import warnings
from pathlib import Path


def run_signature(path: str) -> bytes:
    """Return the arguments of `run` as JSON, or why it cannot be called.

    Args:
        path: file of the source.

    Returns:
        An object with `fault`; or with `arguments`, `mandatory` (those without a default) and
        `takes_any` (whether it takes any others, as `**values`).
    """
    return json.dumps(_signature(Path(path).read_bytes())).encode()


def _signature(content: bytes) -> dict[str, object]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except SyntaxError as error:
        return {"fault": f"line {error.lineno or 1}: {error.msg}"}
    except (ValueError, RecursionError) as error:
        return {"fault": f"cannot be parsed: {error}"}
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    homes = [node for node in tree.body if isinstance(node, kinds) and node.name == "run"]
    if not homes or not isinstance(homes[-1], ast.FunctionDef):
        text = "none" if not homes else f"another in line {homes[-1].lineno}"
        return {"fault": f"expected a function 'def run(...)', found {text}"}
    arguments = homes[-1].args
    if arguments.posonlyargs or arguments.vararg:
        text = f"*{arguments.vararg.arg}" if arguments.vararg else "some before a '/'"
        line = homes[-1].lineno
        return {"fault": f"line {line}: expected arguments of run by their names, found {text}"}
    plain = [each.arg for each in arguments.args]
    mandatory = plain[: len(plain) - len(arguments.defaults)]
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        plain.append(each.arg)
        if default is None:
            mandatory.append(each.arg)
    return {"arguments": plain, "mandatory": mandatory, "takes_any": arguments.kwarg is not None}
