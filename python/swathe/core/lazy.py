"""Names that a package imports on first use (PEP 562)."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package.

    Args:
        package: name of the package.
        modules: the module of each name that is imported on first use. A module of the package
            has its own.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(modules[name])
        value = module if modules[name] == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get
