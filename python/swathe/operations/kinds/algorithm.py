"""Run an algorithm of a user on each group of granules, in the sandbox."""

from __future__ import annotations

from swathe.operations.operation import (
    ObjectOption,
    OperationOption,
    ProgramOperation,
    ResultFormat,
)


class AlgorithmOperation(ProgramOperation):
    """One archive of outputs for each group of granules."""

    name = "algorithm"
    title = "Run an algorithm on groups of granules"
    formats = (
        ResultFormat(
            "zip",
            "Zip, of the outputs of a group",
            "an archive of outputs",
            ".zip",
            "application/zip",
            0.1,
            0.02,
            is_compressed=True,
            has_pictures=False,
        ),
    )
    options = (
        OperationOption(
            "algorithm", "Algorithm", "Algorithm as NAME@VERSION, or NAME for the newest", (), ""
        ),
        ObjectOption("parameters", "Parameters", "Parameters of the algorithm, as JSON", (), {}),
        ObjectOption(
            "files",
            "Files",
            "Files of the algorithm's other inputs, as JSON: STORE:path by name",
            (),
            {},
        ),
        OperationOption(
            "register_as", "Dataset", "New dataset of the portal for the outputs", (), ""
        ),
    )


OPERATION = AlgorithmOperation()
