"""A process that works on jobs until it is killed: see tests/jobs/test_kill.py."""

import sys
import time
from pathlib import Path

from swathe.catalog import Catalog
from swathe.jobs import Jobs, Limits, result_store_by_name
from swathe.workers import Runner, runner

# Else it is done in a few chunks, perhaps before anybody kills it.
runner.MOST_GROWTH = 1.0


def main() -> None:
    url, store, scratch = sys.argv[1:]
    catalog = Catalog.open(url)
    jobs = Jobs(catalog, result_store_by_name(catalog, store, Path(scratch)), limits=Limits())
    Runner(jobs, threads=2).start()
    sys.stdout.write("started\n")
    sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    main()
