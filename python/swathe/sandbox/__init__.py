"""Run programs of users in a box: no network, no files but their own, limits, checked outputs.

>>> from swathe import sandbox
>>> request = sandbox.Request(["/usr/bin/sort", "{in}/names", "-o", "{out}/names"],
...     inputs=[sandbox.Input("names", path="names.txt")], outputs=[sandbox.Output("names")])
>>> report = sandbox.run(request, "results/")
>>> report.outputs["names"].sha256
"""

from swathe.sandbox.launch import check, run
from swathe.sandbox.report import Log, ModeCheck, OutputFile, Report, SandboxCheck
from swathe.sandbox.request import Input, Limits, Output, Request, UserIds

__all__ = [
    "Input",
    "Limits",
    "Log",
    "ModeCheck",
    "Output",
    "OutputFile",
    "Report",
    "Request",
    "SandboxCheck",
    "UserIds",
    "check",
    "run",
]
