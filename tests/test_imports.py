"""Imports point down, and `import swathe` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import swathe

PACKAGE = Path(swathe.__file__).parent

# A module may import from layers above its own line only. A package is the module that its
# __init__ is.
LAYERS = (
    {"core", "core.folders", "environment", "errors", "_swathe", "progress", "sizes"},
    {"core.confined", "core.faults", "core.outputs", "core.packed", "core.parts"},
    {"core.angles", "core.cells", "core.frames", "core.planes", "core.resolver"},
    {"core.lines"},
    {"core.places"},
    {"core.columns"},
    {"core.lists"},
    {"core.tables"},
    {"declared"},
    {"trace.recording", "trace.ulm"},
    {"trace"},
    {"trace.clocks", "trace.kernel", "trace.lines", "trace.outlet"},
    {"trace.collect", "trace.host"},
    {
        "catalog.settings",
        "catalog.values",
        "catalog.holdings",
        "catalog.work",
        "catalog.local_costs",
    },
    {"catalog.rows"},
    {"catalog.faults", "catalog.tables", "catalog.packing"},
    {"catalog.database", "catalog.migrations.env"},
    {"catalog.migrations", "catalog.migrations.versions"},
    {
        "catalog.stores",
        "catalog.performance",
        "catalog.predictions",
        "catalog.datasets",
        "catalog.tokens",
        "catalog.blocks",
    },
    {"catalog.jobvalues"},
    {"catalog.granules", "catalog.chunks", "catalog.demand", "catalog.workers"},
    {"catalog.summaries", "catalog.retrying", "catalog.copies"},
    {"catalog.jobs"},
    {"catalog.catalog"},
    {"catalog"},
    {"boxes", "preview", "sample"},
    {"notebook"},
    {"cutout"},
    {"known", "conversion"},
    {"stacking"},
    {"objects", "manifest", "targets"},
    {"archive"},
    {"datasets", "datasets.sphere", "datasets.headers", "datasets.webdav", "datasets.places"},
    {"datasets.listing"},
    {"datasets.cells"},
    {"datasets.footprint"},
    {"datasets.images", "datasets.search"},
    {"datasets.bulk", "datasets.scan"},
    {"measuring", "measuring.costs", "measuring.local", "measuring.reader"},
    {"measuring.robust", "measuring.places", "measuring.loopback"},
    {"measuring.curve", "measuring.schedule"},
    {"measuring.limits"},
    {"measuring.fitting", "measuring.refitting"},
    {"measuring.feedback", "measuring.writing"},
    {"datasets.mirror"},
    {"predict"},
    {"making"},
    {"single", "many", "client", "jobs.values", "jobs.places"},
    {"jobs.allowance", "jobs.expansion", "jobs.results", "jobs.buckets"},
    {"jobs.costs", "jobs.rows", "jobs.shown"},
    {"jobs.service"},
    {"jobs"},
    {"workers.queues", "workers.certificates"},
    {"workers.growth", "workers.placement", "workers.rates", "workers.security"},
    {"workers.outcome", "workers.wires", "workers.workload", "workers.batches"},
    {"workers.simulated"},
    {"workers.simulation", "workers.doing", "workers.flights"},
    {"workers.pool", "workers.member"},
    {"workers.lasting"},
    {"workers.dispatch", "workers.nodes", "workers.crew", "workers.briefing"},
    {"workers.spreading", "workers.providers", "workers.connection", "workers.sending"},
    {"workers.batch_systems", "workers.roster"},
    {"workers.htcondor", "workers.pbs", "workers.slurm"},
    {"workers.cluster"},
    {"workers.growing"},
    {"workers"},
    {"measuring.probe"},
    {"measuring.buffer", "measuring.host"},
    {"measuring.plots", "measuring.results"},
    {
        "lifelines",
        "lifelines.attributes",
        "lifelines.columns",
        "lifelines.growing",
        "lifelines.view",
    },
    {"lifelines.hosts", "lifelines.offsets", "lifelines.stages"},
    {"lifelines.lines", "lifelines.spans"},
    {"lifelines.families", "lifelines.slow", "lifelines.stalls"},
    {"lifelines.chrome", "lifelines.loads", "lifelines.otlp", "lifelines.report"},
    {"lifelines.packed", "lifelines.picture"},
    {"lifelines.following"},
    {"lifelines.serving"},
    {"experiments", "experiments.statistics", "experiments.settings", "experiments.circumstances"},
    {"experiments.places", "experiments.study", "experiments.ramping"},
    {"experiments.cutting", "experiments.regions", "experiments.testers", "experiments.report"},
    {"experiments.agents", "experiments.figures"},
    {"experiments.single", "experiments.region", "experiments.ramp", "experiments.load"},
    {"experiments.buffering", "experiments.compare"},
    {"__init__"},
    {"portal", "portal.config", "portal.sources", "portal.faults", "portal.users"},
    {"portal.shares", "portal.headers", "portal.pasted"},
    {
        "portal.accesslog",
        "portal.streams",
        "portal.connections",
        "portal.uploads",
        "portal.pictures",
    },
    {"portal.state", "portal.ranges", "portal.replicas"},
    {"portal.access"},
    {"portal.guard", "portal.health"},
    {"portal.vo.faults", "portal.vo.regions", "portal.vo.places", "portal.vo.votable"},
    {"portal.vo.boxing", "portal.vo.identifiers", "portal.vo.parameters", "portal.vo.workers"},
    {"portal.vo.axes", "portal.vo.wanted"},
    {"portal.vo.images"},
    {"portal.vo.selection"},
    {"portal.vo.service"},
    {"portal.vo.sync", "portal.vo.files", "portal.vo.descriptors", "portal.vo.overlap"},
    {"portal.vo.links", "portal.vo.query", "portal.vo.vosi"},
    {"portal.vo.combinations", "portal.vo.documents"},
    {"portal.api.models"},
    {"portal.api.holdings", "portal.api.jobs"},
    {"portal.api.results", "portal.vo.uws"},
    {"portal.api", "portal.vo"},
    {"portal.pages.words", "portal.pages.assets", "portal.pages.plots"},
    {"portal.pages.skymap", "portal.pages.render"},
    {"portal.pages.holdings", "portal.pages.jobs", "portal.pages.session", "portal.pages.tracing"},
    {"portal.pages.archive"},
    {"portal.pages.submission"},
    {"portal.pages.routes"},
    {"portal.pages"},
    {"portal.app"},
    {"portal.serve"},
    {"commands", "commands.options", "commands.output", "commands.usage"},
    {
        "commands.buffer",
        "commands.cache",
        "commands.info",
        "commands.predict",
        "commands.probe",
        "commands.store",
    },
    {"commands.dataset", "commands.find", "commands.serve", "commands.simulate", "commands.token"},
    {"commands.view", "commands.bench"},
    {"commands.portal", "commands.pool", "commands.trace"},
    {"cli", "demo"},
)
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}
# The steps of the database stand for themselves.
STEPS = "catalog.migrations.versions."


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in PACKAGE.rglob("*.py")}


def imported(source: str) -> set[str]:
    """Modules of the package that a source imports anywhere, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "swathe" or (node.module or "").startswith("swathe."):
                package = (node.module or "").removeprefix("swathe").lstrip(".")
                for alias in node.names:
                    name = f"{package}.{alias.name}".lstrip(".")
                    found.add(name if name in RANK else package or "__init__")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "swathe":
                    found.add(alias.name.removeprefix("swathe").lstrip(".") or "__init__")
    return found


def test_every_module_has_a_layer() -> None:
    ranked = {module for module in MODULES if not module.startswith(STEPS)}
    assert ranked | {"_swathe"} == set(RANK)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down(module: str) -> None:
    used = imported(MODULES[module].read_text())
    if module.startswith(STEPS):
        assert not used
        return
    # The version is asked for when everything is there.
    allowed = {"__init__"} if RANK[module] > RANK["__init__"] else set()
    upwards = {name for name in used - allowed if RANK[name] >= RANK[module]}
    assert not upwards


def test_import_loads_no_numpy_and_no_astropy() -> None:
    code = "import swathe, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "swathe" in loaded
    assert not loaded & {
        "numpy",
        "astropy",
        "PIL",
        "rich",
        "typer",
        "pandas",
        "pyarrow",
        "sqlalchemy",
        "httpx",
        "fastapi",
        "pydantic",
    }


def test_dir_shows_the_public_names_only() -> None:
    assert dir(swathe) == sorted(swathe.__all__)
    assert {"cut", "cut_many", "errors", "open", "trace"} <= set(dir(swathe))
    assert not {"boxes", "known", "many", "single", "sizes", "environment"} & set(dir(swathe))
    assert all(hasattr(swathe, name) for name in dir(swathe))
