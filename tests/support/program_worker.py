"""A worker that runs programs as tests do: `program_worker FIRST:COUNT pool worker ...`."""

from __future__ import annotations

import sys

from swathe.algorithms.group_run import BoxSettings
from swathe.cli.app import main
from swathe.sandbox import UserIds
from swathe.workers.dask.worker import here
from tests.support.box import USERS, python

users = UserIds.parse(sys.argv.pop(1))
# The interpreter of a worker of root may be one that the programs' users cannot reach.
here.allow_programs(BoxSettings(python(), "auto", users if USERS else None))
main()
