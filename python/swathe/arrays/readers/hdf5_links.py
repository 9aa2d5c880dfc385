"""Where the links and the elements of HDF5 arrays lead: within the file, or to others."""

from __future__ import annotations

import os
from typing import Any, Protocol

import h5py
from h5py import h5d, h5o

from swathe.arrays.readers.other_files import HOW_TO_READ

MOST_HOPS = 16
"""Limit of soft links that lead to soft links."""


class OtherFiles(Protocol):
    """Files that a file may name, if it may name any."""

    def find(self, name: str, around: str) -> str:
        """Return the path of a file that another one names."""

    def open(self, name: str, around: str) -> h5py.File:
        """Open a file that another one names."""


def address_of(target: Any) -> int:
    """Return the address of a group or dataset in its file."""
    return int(h5o.get_info(target.id).addr)


def target_of(root: h5py.File, path: str, others: OtherFiles | None = None) -> tuple[str, Any]:
    """Return what a path leads to, link by link, or why it leads to nothing.

    Args:
        root: the file.
        path: the path.
        others: files that links may lead to; by default none is opened.

    Raises:
        FormatError: If a link leads to a file that `others` do not have.
    """
    parts = [part for part in path.split("/") if part]
    group: Any = root["/"]
    hops = 0
    while parts:
        name = parts.pop(0)
        if name == ".":
            continue
        link = group.get(name, getlink=True) if isinstance(group, h5py.Group) else None
        if isinstance(link, h5py.ExternalLink) and others is None:
            where = f"a link to {link.path} in another file, {link.filename!r}"
            return where + HOW_TO_READ, None
        if isinstance(link, h5py.SoftLink | h5py.ExternalLink):
            hops += 1
            if hops > MOST_HOPS:
                return f"soft links that lead to more than {MOST_HOPS} others", None
            if isinstance(link, h5py.ExternalLink) and others is not None:
                root = others.open(link.filename, root.filename)
                group = root["/"]
            elif link.path.startswith("/"):
                group = root["/"]
            parts = [part for part in link.path.split("/") if part] + parts
        elif isinstance(link, h5py.HardLink):
            group = group[name]
        else:
            return f"a link to {path}, which does not exist", None
    return "", group


def other_file_of(dataset: h5py.Dataset) -> str:
    """Return which other file has elements of a dataset, by its own words; empty if none."""
    plist = dataset.id.get_create_plist()
    if plist.get_external_count():
        return f"data in another file, {os.fsdecode(plist.get_external(0)[0])!r}"
    if plist.get_layout() == h5d.VIRTUAL:
        for source in dataset.virtual_sources():
            if source.file_name != ".":
                return f"data in another file, {source.file_name!r}"
    return ""


def find_external(dataset: h5py.Dataset, others: OtherFiles | None) -> None:
    """Look for the files of external storage, before the library opens them.

    Raises:
        FormatError: If `others` do not have one.
    """
    plist = dataset.id.get_create_plist()
    for number in range(plist.get_external_count() if others is not None else 0):
        assert others is not None
        others.find(os.fsdecode(plist.get_external(number)[0]), dataset.file.filename)


def virtual_fault(
    dataset: h5py.Dataset, visits: set[tuple[str, int]], others: OtherFiles | None
) -> str:
    """Return why a virtual dataset is not read, such as that sources lie in other files.

    Args:
        dataset: the dataset.
        visits: virtual datasets that it is a source of: file and address; it is added.
        others: files in which sources may lie; by default it is not read then.

    Raises:
        FormatError: If one lies in a file that `others` do not have.
    """
    visits.add((dataset.file.filename, address_of(dataset)))
    for source in dataset.virtual_sources():
        file = dataset.file
        if source.file_name != ".":
            if others is None:
                return f"data in another file, {source.file_name!r}{HOW_TO_READ}"
            file = others.open(source.file_name, file.filename)
        if "%" in source.dset_name:
            return f"data in arrays named by a pattern, {source.dset_name!r}"
        why, target = target_of(file, source.dset_name, others)
        if why:
            return why
        if not isinstance(target, h5py.Dataset):
            return f"data in {source.dset_name}, which is no array"
        plist = target.id.get_create_plist()
        if plist.get_external_count() and others is None:
            return other_file_of(target) + HOW_TO_READ
        find_external(target, others)
        if plist.get_layout() == h5d.VIRTUAL:
            if (target.file.filename, address_of(target)) in visits:
                return "virtual arrays that hold each other"
            if fault := virtual_fault(target, visits, others):
                return fault
    return ""
