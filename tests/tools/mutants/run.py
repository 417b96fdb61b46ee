"""How many small changes of the code do the vectors, or the tests, notice?

    python -m tests.tools.mutants.run [GROUP]... [--sample N] [--seed S] [--list] [--vectors DIR]

cosmic-ray changes a copy of a package, one operator, number or condition at a time. On each mutant
of the reference the vectors of the package, and nothing else, are run; on each of a module that
judges, the tests that `groups.py` names. Every survivor must be explained in `survivors.toml`, and
every explanation must still be needed. Exit code 0 if both hold and enough of the mutants that can
be killed are killed.

With `--sample N` only N mutants of each group are made, drawn by the seed, the same ones each time;
whether every explanation is needed is then not asked.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from .groups import GROUPS, ROOT, Group

HERE = Path(__file__).parent
ENOUGH = 0.98

CONFIG = """
[cosmic-ray]
module-path = [{modules}]
timeout = {timeout}
excluded-modules = []
test-command = "{killer}"
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
    group: str = "reference"

    def covers(self, mutant: Mutant) -> bool:
        return (
            (self.module, self.definition) == (mutant.module, mutant.definition)
            and self.code in ("*", mutant.code)
            and (self.operators == ("*",) or mutant.operator in self.operators)
        )


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.tools.mutants.run")
    options.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}")
    options.add_argument("--sample", type=int, metavar="N", help="only N mutants of each group")
    options.add_argument("--seed", type=int, default=0, metavar="S", help="draws the sample")
    options.add_argument("--list", action="store_true", help="show the explained survivors too")
    options.add_argument("--vectors", type=Path, metavar="DIR", help="instead of the package's")
    asked = options.parse_args()
    if unknown := sorted(set(asked.groups) - set(GROUPS)):
        options.error(f"no group {', '.join(unknown)}: there are {', '.join(GROUPS)}")
    good = [_run(name, asked) for name in asked.groups or ["reference"]]
    return 0 if all(good) else 1


def _run(name: str, asked: argparse.Namespace) -> bool:
    """Whether every survivor of a group is explained, and enough are killed."""
    explanations = [e for e in _explanations() if e.group == name]
    with tempfile.TemporaryDirectory() as directory:
        outcomes = dict(_outcomes(GROUPS[name], Path(directory), asked))
    survivors = [m for m, killed in outcomes.items() if not killed]
    found = {m: next((e for e in explanations if e.covers(m)), None) for m in survivors}
    unexplained = [m for m, e in found.items() if e is None]
    unneeded = [e for e in explanations if e not in found.values() and asked.sample is None]
    kinds = [e.kind for e in found.values() if e is not None]
    killable = len(outcomes) - kinds.count("equivalent") - kinds.count("outside")
    killed = len(outcomes) - len(survivors)
    for mutant in unexplained:
        print(f"survives, unexplained: {mutant}")
    for explanation in unneeded:
        print(f"explained, but no such survivor: {explanation}")
    if asked.list:
        for mutant, e in found.items():
            print(f"survives, {e.kind if e else '?'}: {mutant}")
    by = "its tests" if GROUPS[name].tests else "the vectors"
    part = "" if asked.sample is None else f" (drawn by seed {asked.seed})"
    print(
        f"{name}: {len(outcomes)} mutants{part}, {killed} killed by {by} alone; "
        f"{kinds.count('equivalent')} equivalent, {kinds.count('outside')} outside of what {by} "
        f"can see, {kinds.count('missing')} for want of one, {len(unexplained)} unexplained; "
        f"{killed / max(killable, 1):.1%} of the {killable} that can be killed"
    )
    return not unexplained and not unneeded and killed >= ENOUGH * killable


def _explanations() -> list[Explanation]:
    entries = tomllib.loads((HERE / "survivors.toml").read_text())["survivor"]
    return [Explanation(**{**e, "operators": tuple(e["operators"])}) for e in entries]


def _outcomes(
    group: Group, directory: Path, asked: argparse.Namespace
) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant, and whether it was killed."""
    package = group.package.name
    shutil.copytree(
        ROOT / group.package, directory / package, ignore=shutil.ignore_patterns("__pycache__")
    )
    # Compiled once, and a mutant is told from what was compiled by its content, not by its time.
    compileall.compile_dir(
        directory / package, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH
    )
    killer = _killer(group, asked.vectors)
    config = CONFIG.format(
        modules=", ".join(f'"{package}/{m}"' for m in group.modules),
        timeout=group.timeout,
        killer=shlex.join(killer),
    )
    (directory / "config.toml").write_text(config)
    environment = {
        **os.environ,
        "PYTHONPATH": str(directory),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }

    def cosmic_ray(*words: str) -> None:
        tool = Path(sys.executable).parent / "cosmic-ray"
        subprocess.run([tool, *words], cwd=directory, env=environment, check=True)

    subprocess.run(killer, cwd=directory, env=environment, check=True)
    cosmic_ray("init", "config.toml", "session.sqlite")
    with use_db(directory / "session.sqlite", WorkDB.Mode.open) as database:
        _skip(database, directory / package, asked.sample, asked.seed)
    cosmic_ray("exec", "config.toml", "session.sqlite")
    with use_db(directory / "session.sqlite", WorkDB.Mode.open) as database:
        results = dict(database.results)
        for item in database.work_items:
            result = results[item.job_id]
            if result.worker_outcome != WorkerOutcome.SKIPPED:
                mutant = _mutant(item, directory / package)
                yield mutant, result.test_outcome != TestOutcome.SURVIVED


def _killer(group: Group, vectors: Path | None) -> list[str]:
    if not group.tests:
        return [
            sys.executable,
            str(HERE / "kill.py"),
            *([str(vectors.resolve())] if vectors else []),
        ]
    tests = [str(ROOT / test) for test in group.tests]
    quiet = ["-q", "-x", "--tb=no", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", *quiet, "--rootdir", str(ROOT),
            "-c", str(ROOT / "pyproject.toml"), *tests]  # fmt: skip


def _mutant(item: WorkItem, package: Path) -> Mutant:
    (mutation,) = item.mutations
    module, line = _module(item, package), mutation.start_pos[0]
    code = (package / module).read_text().splitlines()[line - 1].strip()
    operator = mutation.operator_name.removeprefix("core/")
    name = f"{operator} {mutation.occurrence}" if operator == "NumberReplacer" else operator
    return Mutant(module, mutation.definition_name or "", code, name, line)


def _module(item: WorkItem, package: Path) -> str:
    (mutation,) = item.mutations
    return str(Path(mutation.module_path).relative_to(package.name))


def _skip(database: WorkDB, package: Path, sample: int | None, seed: int) -> None:
    """Annotations are never evaluated, so to change one is to change nothing; and the sample."""
    items = sorted(database.work_items, key=lambda item: _place(item, package))
    made = [item for item in items if not _of_an_annotation(item, package)]
    if sample is not None:
        made = random.Random(seed).sample(made, min(sample, len(made)))
    kept = {item.job_id for item in made}
    for item in items:
        if item.job_id not in kept:
            database.set_result(item.job_id, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))


def _of_an_annotation(item: WorkItem, package: Path) -> bool:
    (mutation,) = item.mutations
    spans = _annotations((package / _module(item, package)).read_text())
    return any(start <= mutation.start_pos and mutation.end_pos <= end for start, end in spans)


def _place(item: WorkItem, package: Path) -> tuple[str, str, int]:
    (mutation,) = item.mutations
    return _module(item, package), mutation.operator_name, mutation.occurrence


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
