"""Read the build of an algorithm or a library: its sources, and flags that do no harm."""

from __future__ import annotations

import re

from swathe.algorithms.definition import COMPILER_LANGUAGES, Build
from swathe.algorithms.header_table import HeaderTable
from swathe.core.value_errors import short_text

KEYS = ("language", "sources", "flags")
MOST_ENTRIES = 200
"""Most sources, headers, modules or flags."""
SUFFIXES = (
    *(".c", ".cc", ".cpp", ".cxx"),
    *(".f", ".for", ".f90", ".f95", ".f03", ".f08", ".F", ".F90"),
)
PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}){0,10}")
PATH_FORM = "paths of files in the package, as src/main.c"
PLAIN_FLAGS = frozenset(
    (
        *("-O", "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-Ofast", "-g", "-g0", "-g1", "-g2"),
        *("-w", "-pedantic", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"),
        *("-cpp", "-pthread", "-fopenmp", "-ffast-math", "-fno-fast-math", "-fno-math-errno"),
        *("-funroll-loops", "-ftree-vectorize", "-fwrapv", "-fno-strict-aliasing"),
        *("-fno-exceptions", "-fno-rtti", "-fbackslash", "-fimplicit-none", "-frecursive"),
        *("-ffree-form", "-ffixed-form", "-ffree-line-length-none", "-ffixed-line-length-none"),
        *("-fdefault-real-8", "-fdefault-integer-8", "-fdefault-double-8", "-fno-range-check"),
        *("-fcheck=all", "-fcheck=bounds", "-fallow-argument-mismatch"),
        *("-march=x86-64", "-march=x86-64-v2", "-march=x86-64-v3", "-march=armv8-a"),
    )
)
"""None of them names a file, a program or an output."""
FLAGS = (
    re.compile(r"-std=(?:c|gnu|c\+\+|gnu\+\+|f|iso9899:)[0-9a-z]{1,8}|-std=legacy"),
    re.compile(r"-D[A-Za-z_][A-Za-z0-9_]{0,59}(?:=[A-Za-z0-9_.+-]{0,100})?"),
    re.compile(r"-l[A-Za-z0-9_][A-Za-z0-9_+.-]{0,59}"),
)
INCLUDE = "-I"
FLAG_FORM = (
    "flags as -O2, -g, -Wall, -std=, -fopenmp, -D, -l and -I with a folder of the package; others "
    "are refused"
)


def read_build(table: HeaderTable) -> Build:
    """Return the build of a table; errors are collected there."""
    table.refuse_unknown(KEYS)
    language = table.choice("language", COMPILER_LANGUAGES, None)
    sources = read_paths(table, "sources")
    if not sources and table.is_there:
        table.fault("sources", "at least one source", "none")
    for source in sources:
        if not source.endswith(SUFFIXES):
            table.fault("sources", f"names that end in {', '.join(SUFFIXES)}", short_text(source))
    flags = table.texts("flags", MOST_ENTRIES)
    for flag in flags:
        if not is_harmless(flag):
            table.fault("flags", FLAG_FORM, short_text(flag))
    return Build(language, sources, flags)


def read_paths(table: HeaderTable, key: str) -> tuple[str, ...]:
    """Return paths of files in the package that differ."""
    paths = table.texts(key, MOST_ENTRIES)
    for path in paths:
        if not PATH.fullmatch(path):
            table.fault(key, PATH_FORM, short_text(path))
    return tuple(path for path in paths if PATH.fullmatch(path))


def is_harmless(flag: str) -> bool:
    """Check whether a flag of a compiler reaches nothing but the package and the system."""
    if flag.startswith(INCLUDE):
        return PATH.fullmatch(flag[len(INCLUDE) :]) is not None
    return flag in PLAIN_FLAGS or any(form.fullmatch(flag) for form in FLAGS)
