"""How many small changes of the reference do the conformance vectors notice?

    python -m tests.tools.mutants.run [--list] [--vectors=DIR]

cosmic-ray changes a copy of the reference, one operator, number or condition at a time; the vectors
of the package, and nothing else, are run on each. Every survivor must be explained in
`survivors.toml`, and every explanation must still be needed. Exit code 0 if both hold and enough
of the mutants that a vector could kill are killed.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

HERE = Path(__file__).parent
IMPLEMENTATION = HERE.parents[2] / "impl" / "mmcache"
MODULES = ("encoder_cache.py", "encoder_decoder.py")
"""What the vectors call."""
ENOUGH = 0.98

CONFIG = """
[cosmic-ray]
module-path = [{modules}]
timeout = 20.0
excluded-modules = []
test-command = "{python} {killer}"
[cosmic-ray.distributor]
name = "local"
"""


@dataclass(frozen=True)
class Mutant:
    module: str
    definition: str
    code: str
    """The line that is changed, as it is in the source."""
    operator: str
    line: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.definition}: {self.operator}: {self.code}"


@dataclass(frozen=True)
class Explanation:
    module: str
    definition: str
    code: str
    operators: tuple[str, ...]
    kind: str
    """`equivalent`: no caller can tell. `outside`: only one that breaks its duties, or that calls
    what no vector calls. `missing`: a vector could, and none does."""
    why: str

    def covers(self, mutant: Mutant) -> bool:
        return (
            (self.module, self.definition) == (mutant.module, mutant.definition)
            and self.code in ("*", mutant.code)
            and (self.operators == ("*",) or mutant.operator in self.operators)
        )


def main() -> int:
    explanations = [
        Explanation(**{**e, "operators": tuple(e["operators"])})
        for e in tomllib.loads((HERE / "survivors.toml").read_text())["survivor"]
    ]
    with tempfile.TemporaryDirectory() as name:
        outcomes = dict(_outcomes(Path(name)))
    survivors = [m for m, killed in outcomes.items() if not killed]
    found = {m: next((e for e in explanations if e.covers(m)), None) for m in survivors}
    unexplained = [m for m, e in found.items() if e is None]
    unneeded = [e for e in explanations if e not in found.values()]
    kinds = [e.kind for e in found.values() if e is not None]
    killable = len(outcomes) - kinds.count("equivalent") - kinds.count("outside")
    killed = len(outcomes) - len(survivors)
    for mutant in unexplained:
        print(f"survives, unexplained: {mutant}")
    for explanation in unneeded:
        print(f"explained, but no such survivor: {explanation}")
    if "--list" in sys.argv:
        for mutant, e in found.items():
            print(f"survives, {e.kind if e else '?'}: {mutant}")
    print(
        f"{len(outcomes)} mutants, {killed} killed by the vectors alone; "
        f"{kinds.count('equivalent')} equivalent, {kinds.count('outside')} outside the vectors' "
        f"world, {kinds.count('missing')} for want of a vector, {len(unexplained)} unexplained; "
        f"{killed / killable:.1%} of the {killable} that a vector can kill"
    )
    return 0 if not unexplained and not unneeded and killed >= ENOUGH * killable else 1


def _outcomes(directory: Path) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant, and whether it was killed."""
    shutil.copytree(IMPLEMENTATION, directory / "mmcache")
    modules = ", ".join(f'"mmcache/{m}"' for m in MODULES)
    given = [w.partition("=")[2] for w in sys.argv if w.startswith("--vectors=")]
    killer = " ".join([str(HERE / "kill.py"), *(str(Path(d).resolve()) for d in given)])
    config = CONFIG.format(modules=modules, python=sys.executable, killer=killer)
    (directory / "config.toml").write_text(config)
    environment = {
        **os.environ, "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"
    }  # fmt: skip

    def cosmic_ray(*words: str) -> None:
        tool = Path(sys.executable).parent / "cosmic-ray"
        subprocess.run([tool, *words], cwd=directory, env=environment, check=True)

    subprocess.run([sys.executable, *killer.split()], cwd=directory, env=environment, check=True)
    cosmic_ray("init", "config.toml", "session.sqlite")
    with use_db(directory / "session.sqlite", WorkDB.Mode.open) as database:
        _skip_annotations(database)
    cosmic_ray("exec", "config.toml", "session.sqlite")
    with use_db(directory / "session.sqlite", WorkDB.Mode.open) as database:
        for item in database.work_items:
            result = dict(database.results).get(item.job_id)
            assert result is not None
            if result.worker_outcome != WorkerOutcome.SKIPPED:
                yield _mutant(item), result.test_outcome != TestOutcome.SURVIVED


def _mutant(item: WorkItem) -> Mutant:
    (mutation,) = item.mutations
    module, line = mutation.module_path.name, mutation.start_pos[0]
    code = (IMPLEMENTATION / module).read_text().splitlines()[line - 1].strip()
    operator = mutation.operator_name.removeprefix("core/")
    name = f"{operator} {mutation.occurrence}" if operator == "NumberReplacer" else operator
    return Mutant(module, mutation.definition_name or "", code, name, line)


def _skip_annotations(database: WorkDB) -> None:
    """They are never evaluated, so to change one is to change nothing."""
    for item in list(database.work_items):
        (mutation,) = item.mutations
        spans = _annotations((IMPLEMENTATION / mutation.module_path.name).read_text())
        if any(start <= mutation.start_pos and mutation.end_pos <= end for start, end in spans):
            database.set_result(item.job_id, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))


def _annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where they begin and end, in lines and columns."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            found.append(node.returns)
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            found.append(node.annotation)
    return [((e.lineno, e.col_offset), (e.end_lineno or 0, e.end_col_offset or 0)) for e in found]


if __name__ == "__main__":
    sys.exit(main())
