"""The processes of a portal: its operations, `echo`, and the algorithms of its catalogue."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.core.errors import NoSuchAlgorithmError
from swathe.operations.operation import ProgramOperation
from swathe.operations.registry import operations
from swathe.portal.api.algorithms import type_of
from swathe.portal.processes.algorithm_process import AlgorithmProcess
from swathe.portal.processes.echo import EchoProcess
from swathe.portal.processes.operation_process import OperationProcess
from swathe.portal.processes.problems import no_such_process
from swathe.portal.processes.process import summary

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.algorithms import AlgorithmRecord
    from swathe.portal.processes.process import Process

LONGEST_ID = 200


@cache
def built_in_processes() -> dict[str, Process]:
    """Return the processes that every portal has, by id."""
    every: list[Process] = [
        OperationProcess(each)
        for each in operations().values()
        if not isinstance(each, ProgramOperation)  # each algorithm is a process
    ]
    return {each.id: each for each in [*every, EchoProcess()]}


def summaries(catalog: Catalog, url: str) -> list[dict[str, Any]]:
    """Return the summaries of all processes; of an algorithm that of its newest version."""
    algorithms: dict[str, AlgorithmRecord] = {}
    for record in catalog.algorithms():
        algorithms.setdefault(record.name, record)
    return [
        *(process.summary(url) for process in built_in_processes().values()),
        *(
            summary(
                each.name,
                each.version,
                each.name,
                each.description,
                url,
                is_mutable=AlgorithmProcess.is_mutable,
                job_control=AlgorithmProcess.job_control,
            )
            for each in algorithms.values()
        ),
    ]


def find_process(catalog: Catalog, identifier: str) -> Process:
    """Return a process; an algorithm by its name, or by NAME@VERSION.

    Raises:
        ProblemError: If there is no such process.
    """
    if (process := built_in_processes().get(identifier)) is not None:
        return process
    if len(identifier) > LONGEST_ID or not identifier.isprintable():
        raise no_such_process(identifier)
    try:
        version = algorithm_version(catalog, identifier)
    except NoSuchAlgorithmError as error:
        raise no_such_process(identifier) from error
    return AlgorithmProcess(version.definition, identifier, type_of(version.source))
