"""The command `mmcache-spec`: prove, refute, and regenerate."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from mmcache_vectors.clauses import CLAUSES

from ..campaign import ClusterError, workers
from ..checks.bounded import Counterexample, Disagreement, NoVerdict, along, shortest
from ..checks.complete import Answer
from ..checks.coverage import cover
from ..checks.foundations import Unfounded
from ..checks.induction import Outcome
from ..checks.lasso import Lasso, find_lasso
from ..checks.proof import Proof, Share, check_vacuity, prove, prove_complete, solver_version
from ..checks.unrolling import Start
from ..evaluate.text import formula
from ..generate.arenas import situations
from ..generate.manifest import statistics
from ..generate.suite import Suite
from ..model.progress_clauses import WALK
from ..model.variants import SPECIFIED, VARIANTS, Variant
from ..model.world import scope, scopes_of, scopes_up_to
from ..render.completeness import answer_story, complete_summary
from ..render.lasso import lasso_data, lasso_story
from ..render.story import as_json, cti_story, story
from .designs import cores_command, judge_designs
from .lemmas import lemmas_command

__all__ = ["main"]

PROVED, REFUTED, USAGE, UNKNOWN = 0, 1, 2, 3
FOUND, NONE_FOUND = 0, 1

SMALL = scope(3, 2, 2)
"""Where CTIs are looked for, and lemmas tried."""
out = Console(highlight=False, soft_wrap=True, markup=False)
err = Console(highlight=False, soft_wrap=True, markup=False, stderr=True)


class VariantName(click.ParamType[Variant]):
    name = "VARIANT"

    def convert(self, value: Any, param: Any, ctx: Any) -> Variant:
        if isinstance(value, Variant):
            return value
        if value not in VARIANTS:
            self.fail(f"no variant {value!r}; there are: {', '.join(VARIANTS)}", param, ctx)
        return VARIANTS[value]

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(v) for v in VARIANTS if v.startswith(incomplete)]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mmcache-spec")
def cli() -> None:
    """The specification of the multimodal encoder cache: what must hold, and why it does."""


cli.add_command(cores_command)
cli.add_command(lemmas_command)


def main() -> None:
    """The command. A reader that goes away, or a full disk, is no verdict."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        cli()
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        err.print(f"cannot write: {error.strerror}")
        sys.exit(UNKNOWN)


# --- prove -------------------------------------------------------------------------------------


@cli.command("prove")
@click.argument("variant", type=VariantName(), default=SPECIFIED.name)
@click.option("--json", "as_data", is_flag=True, help="Print every obligation as JSON.")
@click.option("--verbose", "-v", is_flag=True, help="Print every obligation.")
def prove_command(variant: Variant, as_data: bool, verbose: bool) -> None:
    """Prove every clause of VARIANT, for any number of hashes and requests.

    Exit code: 0 proved, 1 refuted, 2 usage, 3 unknown.
    """
    with _apology(UNKNOWN), workers() as executor:
        proof = _prove(variant, executor)
    if as_data:
        print(json.dumps(_proof_data(variant, proof), indent=2))
    else:
        _print_proof(variant, proof, verbose)
    sys.exit({"proved": PROVED, "refuted": REFUTED}.get(proof.verdict, UNKNOWN))


SHARES = {"engine": 4}


def _prove(variant: Variant, executor: Executor) -> Proof:
    """All obligations and vacuity checks, on all cores."""
    started = time.perf_counter()
    jobs = []
    for k, system in enumerate(variant.systems):
        of = SHARES.get(system.name, 1)
        jobs += [executor.submit(_prove_share, variant.name, k, Share(n, of)) for n in range(of)]
        jobs.append(executor.submit(_check_vacuity, variant.name, k))
        if variant.expected is None and system.freedoms:
            jobs.append(executor.submit(_prove_complete, variant.name, k))
    parts = [job.result() for job in jobs]
    return Proof.merged(parts, time.perf_counter() - started)


def _prove_share(name: str, system: int, share: Share) -> Proof:
    return prove(VARIANTS[name].systems[system], SMALL, share)


def _check_vacuity(name: str, system: int) -> Proof:
    """What must be reachable, but for the conditions that the variant says never come true."""
    variant = VARIANTS[name]
    of = variant.systems[system]
    found = check_vacuity(of, situations(of), SMALL)
    for condition in variant.never.keys() & found.witnesses.keys():
        if found.witnesses[condition] is not None:
            raise NoVerdict(f"{name} says that this never comes true, and it does: {condition}")
    kept = {c: trace for c, trace in found.witnesses.items() if c not in variant.never}
    return replace(found, witnesses=kept)


def _prove_complete(name: str, system: int) -> Proof:
    return prove_complete(VARIANTS[name].systems[system], SMALL)


def _proof_data(variant: Variant, proof: Proof) -> dict[str, Any]:
    return {
        "variant": variant.name,
        "verdict": proof.verdict,
        "solver": {"name": "z3", "version": solver_version()},
        "seconds": round(proof.seconds, 3),
        "obligations": [
            {
                "system": o.obligation.system.name,
                "property": o.obligation.claim.name,
                "clause": o.obligation.claim.clause,
                "action": o.obligation.action.name if o.obligation.action else None,
                "kind": o.obligation.kind,
                "verdict": o.verdict,
                "by_definition": o.by_definition,
                "seconds": round(o.seconds, 4),
            }
            for o in proof.outcomes
        ],
        "determined": [
            {
                "system": a.question.system.name,
                "action": a.question.action.name if a.question.action else None,
                "what": a.question.what,
                "verdict": a.verdict,
                "seconds": round(a.seconds, 4),
            }
            for a in proof.answers
        ],
        "vacuity": {
            "reachable": [name for name, trace in proof.witnesses.items() if trace is not None],
            "unreachable": list(proof.unreachable),
            "false_lemmas": [formula(lemma) for lemma in proof.false_lemmas],
            "unfounded": [_not_shown(thing) for thing in proof.unfounded],
        },
    }


def _print_proof(variant: Variant, proof: Proof, verbose: bool) -> None:
    out.print(f"{variant.name}: {variant.says}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("  clause", no_wrap=True)
    for head in ("verdict", "by"):
        table.add_column(head)
    table.add_column("proofs", justify="right")
    # As wide as "123.45 s" always: what a page shows of a run is compared with other runs.
    table.add_column("time", justify="right", min_width=8)
    for clause, outcomes in _by_clause(proof).items():
        verdicts = {o.verdict for o in outcomes}
        worst = next(v for v in ("refuted", "unknown", "proved") if v in verdicts)
        sign = {"proved": "✓", "refuted": "✗", "unknown": "?"}[worst]
        what = f"{clause} {CLAUSES[clause].name}" if clause else "strengthening invariants"
        seconds = sum(o.seconds for o in outcomes)
        grounds = _grounds(outcomes) if worst == "proved" else ""
        table.add_row(f"{sign} {what}", worst, grounds, f"{len(outcomes)}", f"{seconds:.2f} s")
    for name, mine in _by_system(proof).items():
        worst = "proved" if all(a.verdict == "proved" for a in mine) else "unknown"
        sign, what = "✓" if worst == "proved" else "?", f"completeness of the {name}"
        seconds = sum(a.seconds for a in mine)
        table.add_row(f"{sign} {what}", worst, "", f"{len(mine)}", f"{seconds:.2f} s")
    out.print(table)
    if verbose:
        for o in proof.outcomes:
            out.print(f"  {o.verdict:8} {o.seconds:6.3f} s  {o.obligation.label}")
    for outcome in proof.outcomes:
        if outcome.cti is not None:
            out.print()
            for line in cti_story(outcome):
                out.print(line)
        elif outcome.verdict == "unknown":
            out.print(f"? {outcome.obligation.label}: neither proved nor refuted")
    for answer in proof.undetermined:
        _print_lines(answer_story(answer))
    for name in proof.unreachable:
        out.print(f"? vacuous: no reachable state in which {name}")
    for lemma in proof.false_lemmas:
        out.print(f"? wrong lemma about finite sets: {formula(lemma)}")
    for thing in proof.unfounded:
        out.print(f"? taken for granted: {_not_shown(thing)}")
    out.print()
    out.print(_summary(proof))


def _not_shown(thing: Unfounded) -> str:
    return f"{thing.where}: {formula(thing.about)} {thing.says}"


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        out.print(line)


def _by_system(proof: Proof) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for answer in proof.answers:
        found.setdefault(answer.question.system.name.replace("_", "-"), []).append(answer)
    return found


def _by_clause(proof: Proof) -> dict[str | None, list[Outcome]]:
    found: dict[str | None, list[Outcome]] = {clause: [] for clause in CLAUSES}
    found[None] = []
    for outcome in proof.outcomes:
        found[outcome.obligation.claim.clause].append(outcome)
    return {clause: outcomes for clause, outcomes in found.items() if outcomes}


def _grounds(outcomes: list[Outcome]) -> str:
    """What the proofs rest on: the definition of the call alone, or the invariants."""
    alone = {o.by_definition for o in outcomes if o.obligation.kind != "initiation"}
    return {frozenset({True}): "definition", frozenset({False}): "induction"}.get(
        frozenset(alone), "both"
    )


def _obligations(count: int) -> str:
    return "1 obligation" if count == 1 else f"{count} obligations"


def _summary(proof: Proof) -> str:
    count = len(proof.outcomes)
    reached = len(proof.witnesses) - len(proof.unreachable)
    checks = f"{reached} of {len(proof.witnesses)} vacuity checks reached"
    if proof.answers:
        known = len(proof.answers) - len(proof.undetermined)
        checks = f"{known} of {len(proof.answers)} answers and states determined, {checks}"
    time = f"{proof.seconds:.1f} s, z3 {solver_version()}"
    match proof.verdict:
        case "proved":
            return (
                f"PROVED for any number of hashes and requests: {count} obligations, "
                f"{checks} ({time})"
            )
        case "refuted":
            wrong = sum(o.verdict == "refuted" for o in proof.outcomes)
            return f"REFUTED: {wrong} of {count} obligations have a counterexample ({time})"
    return f"UNKNOWN: nothing is claimed ({checks}; {time})"


# --- complete ----------------------------------------------------------------------------------


@cli.command("complete")
@click.option("--verbose", "-v", is_flag=True, help="Print every question.")
def complete_command(verbose: bool) -> None:
    """Prove that the clauses leave one answer, and one state to be seen, to every call.

    Any two designs that satisfy them then answer the same for ever. Where two answers are left,
    both are printed: that is the clause that is missing.

    Exit code: 0 complete, 1 not, 2 usage, 3 unknown.
    """
    systems = {k: s for k, s in enumerate(SPECIFIED.systems) if s.freedoms}
    with _apology(UNKNOWN), workers() as executor:
        jobs = [executor.submit(_prove_complete, SPECIFIED.name, k) for k in systems]
        proofs = [job.result() for job in jobs]
    for system, proof in zip(systems.values(), proofs, strict=True):
        if verbose:
            for a in proof.answers:
                out.print(f"  {a.verdict:8} {a.seconds:6.3f} s  {system.name}: {a.question.label}")
        for answer in proof.undetermined:
            _print_lines(answer_story(answer))
        _print_lines(complete_summary(system, proof.answers))
    verdicts = {a.verdict for proof in proofs for a in proof.answers}
    sys.exit(REFUTED if "refuted" in verdicts else UNKNOWN if "unknown" in verdicts else PROVED)


# --- refute ------------------------------------------------------------------------------------


@cli.command("refute")
@click.argument("variant", type=VariantName())
@click.option(
    "--from",
    "origin",
    type=click.Choice(["init", "pass"]),
    default="init",
    show_default=True,
    help="Start from the empty cache, or from any state in which a pass may begin.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("--bound", type=click.IntRange(1), default=13, show_default=True, help="In calls.")
@click.option(
    "--scope",
    "size",
    type=click.IntRange(1, 26),
    nargs=3,
    metavar="HASHES REQUESTS INPUTS",
    help="The largest scope to search. INPUTS are those of one request.",
)
@click.option("--clause", help="Break this clause, not the one that the variant is known for.")
def refute_command(
    variant: Variant,
    origin: Any,
    form: str,
    bound: int,
    size: tuple[int, int, int] | None,
    clause: str | None,
) -> None:
    """Find the shortest counterexample of VARIANT.

    Sizes and capacity are symbolic; the scope bounds hashes, requests, and inputs of a request.
    The example is made small, and executed again without the solver.

    Exit code: 0 found, 1 none up to the bound, 2 usage, 3 unknown.
    """
    if clause is not None and clause not in CLAUSES:
        raise click.UsageError(f"no clause {clause!r}; there are: {', '.join(CLAUSES)}")
    found: Counterexample | None = None
    searched = ""
    with _apology(UNKNOWN):
        for system in variant.systems:
            scopes = scopes_up_to(*size) if size else scopes_of(system.name)
            searched = scopes[-1].name
            wanted = system.stating(clause) if clause else variant.aims_at
            if wanted == ():
                continue
            found = shortest(system, scopes, origin, bound, wanted)
            if found is not None:
                break
    if form == "json":
        data: dict[str, Any] = {"variant": variant.name, "bound": bound, "scope": searched}
        data["counterexample"] = None if found is None else as_json(found)
        if found is not None and (lasso := _lasso(variant, found)) is not None:
            data["lasso"] = lasso_data(lasso)
        print(json.dumps(data, indent=2))
    elif found is None:
        out.print(f"{variant.name}: no counterexample of up to {bound} calls, {searched}")
    else:
        _print_counterexample(variant, found)
    sys.exit(NONE_FOUND if found is None else FOUND)


def _lasso(variant: Variant, found: Counterexample) -> Lasso | None:
    """The livelock that a counterexample to progress is the beginning of."""
    if variant.expected is None or variant.expected.lasso is None or found.origin != "init":
        return None
    return find_lasso(variant.system, WALK, found.world)


def _print_counterexample(variant: Variant, found: Counterexample) -> None:
    where = "the empty cache" if found.origin == "init" else "the start of a pass"
    calls = "call" if found.length == 1 else "calls"
    out.print(f"{variant.name}: {variant.says}")
    out.print(f"The shortest counterexample from {where} has {found.length} {calls}.")
    out.print()
    for line in story(found):
        out.print(line)
    if (lasso := _lasso(variant, found)) is not None:
        out.print()
        for line in lasso_story(lasso):
            out.print(line)


# --- variants ----------------------------------------------------------------------------------


@cli.command("variants")
@click.option("--check", is_flag=True, help="Recompute everything; fail on any difference.")
@click.option(
    "--follow",
    is_flag=True,
    help="Of the engine, follow the expected counterexamples; do not look for shorter ones.",
)
def variants_command(check: bool, follow: bool) -> None:
    """List every variant with its expected verdict, or check them all.

    To look for shorter counterexamples of the engine takes hours, to follow the expected ones a
    minute.

    Exit code: 0 as expected, 1 not as expected, 2 usage, 3 unknown.
    """
    if not check:
        for variant in VARIANTS.values():
            _print_variant(variant)
        return
    bad = 0
    with _apology(UNKNOWN), workers() as executor:
        jobs = [(v, executor.submit(_recompute, name, follow)) for name, v in VARIANTS.items()]
        for variant, job in jobs:
            differences = job.result()
            bad += bool(differences)
            out.print(f"{'✗' if differences else '✓'} {variant.name}")
            for difference in differences:
                out.print(f"    {difference}")
    out.print(f"{len(VARIANTS) - bad} of {len(VARIANTS)} variants as expected")
    sys.exit(1 if bad else 0)


def _print_variant(variant: Variant) -> None:
    seen = f"  ({', '.join(variant.seen_in)})" if variant.seen_in else ""
    out.print(f"{variant.name}{seen}")
    out.print(f"    {variant.says}")
    if variant.expected is None:
        out.print("    expected: proved")
        return
    expected = variant.expected
    out.print(f"    expected: breaks {', '.join(expected.breaks) or 'only what follows'}")
    for origin, actions in (("init", expected.from_init), ("pass", expected.from_pass)):
        out.print(f"      --from {origin}, {len(actions)}: {', '.join(actions)}")


def _recompute(name: str, follow: bool) -> list[str]:
    """What is not as expected of this variant."""
    variant = VARIANTS[name]
    parts = [prove(system, SMALL) for system in variant.systems]
    parts += [_check_vacuity(name, k) for k in range(len(variant.systems))]
    proof = Proof.merged(parts, 0)
    expected = variant.expected
    # A wrong design may well never come to a condition of a clause, or to a named situation.
    situated = {f"{s.name}: {g.name}" for s in variant.systems for g in situations(s).goals}
    missed = {*proof.hollow, *situated} if expected is not None else set()
    differences = [f"not reachable: {n}" for n in proof.unreachable if n not in missed]
    differences += [f"wrong lemma: {formula(lemma)}" for lemma in proof.false_lemmas]
    differences += [f"taken for granted: {_not_shown(thing)}" for thing in proof.unfounded]
    differences += [f"unknown: {o.obligation.label}" for o in proof.undecided]
    if expected is None:
        if proof.verdict != "proved":
            differences.append(f"expected to be proved, but {proof.verdict}")
        return differences
    if set(proof.refuted_clauses) != set(expected.breaks):
        got = ", ".join(proof.refuted_clauses) or "nothing"
        differences.append(f"expected to break {', '.join(expected.breaks)}, but breaks {got}")
    origins: tuple[tuple[Start, tuple[str, ...]], ...] = (
        ("init", expected.from_init),
        ("pass", expected.from_pass),
    )
    for origin, actions in origins:
        scopes = scopes_of(variant.system.name)
        if follow and variant.system.name == "engine":
            found = along(variant.system, scopes, origin, actions, variant.aims_at)
        else:
            found = shortest(variant.system, scopes, origin, 13, variant.aims_at)
        got_actions = () if found is None else found.actions
        if got_actions != actions:
            differences.append(
                f"--from {origin}: expected {', '.join(actions)}; got {', '.join(got_actions)}"
            )
        lasso = None if found is None else _lasso(variant, found)
        if origin == "init" and expected.lasso != (lasso and lasso.actions):
            differences.append(f"lasso: expected {expected.lasso}; got {lasso and lasso.actions}")
    return differences


# --- files -------------------------------------------------------------------------------------


@cli.command("obligations")
@click.option("--out", "folder", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.argument("variant", type=VariantName(), default=SPECIFIED.name)
def obligations_command(folder: Path, variant: Variant) -> None:
    """Write the obligations of VARIANT as SMT-LIB 2 scripts, and the questions of completeness.

    `unsat` means proved.
    """
    from ..checks.complete import questions
    from ..checks.induction import obligations
    from ..checks.smtlib import question_script, scripts

    written: set[str] = set()
    with _apology(USAGE):
        folder.mkdir(parents=True, exist_ok=True)
        for system in variant.systems:
            found = [script for o in obligations(system) for script in scripts(o)]
            for script in (*found, *map(question_script, questions(system))):
                (folder / f"{script.name}.smt2").write_text(script.text, encoding="utf-8")
                written.add(script.name)
    out.print(f"{len(written)} scripts in {folder}")


@cli.command("counterexamples")
@click.option("--check", is_flag=True, help="Write nothing; fail where a file is not as generated.")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="By default, the vectors of the installed mmcache_conformance.",
)
@click.option(
    "--deep", is_flag=True, help="Instead, write long seeded walks, the deep size, into --out."
)
def counterexamples_command(check: bool, folder: Path | None, deep: bool) -> None:
    """Regenerate the conformance vectors, byte for byte.

    Exit code: 0 done, or no drift; 1 drift; 2 usage; 3 unknown.
    """
    if deep:
        _write_walks(check, folder)
        return
    from mmcache_vectors.manager import encode

    from ..generate.manifest import manifest
    from ..generate.suite import generate

    package = _vectors_package()
    folder = folder or package / "vectors"
    with _apology(UNKNOWN), workers() as executor:
        suite = generate(executor)
    files = {folder / f"{v.id}.json": encode(v) for v in suite.vectors.values()}
    files[folder.parent / "manifest.json"] = manifest(suite)
    present = {p: p.read_bytes() for p in folder.glob("*.json")}
    present |= {p: p.read_bytes() for p in files if p.is_file()}
    if check:
        drifted = [p for p in sorted({*files, *present}) if files.get(p) != present.get(p)]
        for path in drifted:
            what = (
                "is not generated any more"
                if path not in files
                else ("differs" if path in present else "is missing")
            )
            out.print(f"✗ {path} {what}")
        out.print("mend it: mmcache-spec counterexamples" if drifted else _statistics(suite))
        sys.exit(1 if drifted else 0)
    with _apology(USAGE):
        folder.mkdir(parents=True, exist_ok=True)
        for path in present.keys() - files.keys():
            path.unlink()
        for path, content in files.items():
            path.write_bytes(content)
    out.print(_statistics(suite))


def _write_walks(check: bool, folder: Path | None) -> None:
    from mmcache_vectors.manager import encode

    from ..generate.walks import walks

    if folder is None or check:
        raise click.UsageError("--deep needs --out, and nothing to --check: it is not packaged")
    with _apology(USAGE), workers() as executor:
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        for vector in walks(executor):
            (folder / f"{vector.id}.json").write_bytes(encode(vector))
            count += 1
    out.print(f"{count} vectors in {folder}")
    out.print(f"run them: mmcache-conformance run --vectors {folder}")


def _statistics(suite: Suite) -> str:
    numbers = statistics(suite)
    return "\n".join(f"{what:32} {number}" for what, number in numbers.items())


def _vectors_package() -> Path:
    found = find_spec("mmcache_vectors")
    if found is None or not found.submodule_search_locations:
        raise click.UsageError("mmcache_vectors is not installed; say where with --out")
    return Path(found.submodule_search_locations[0])


@cli.command("coverage")
@click.option("--markdown", is_flag=True, help="As in docs/coverage.md.")
def coverage_command(markdown: bool) -> None:
    """Which goals some calls reach, and which are proved to be out of reach.

    Exit code: 0 every goal is one or the other, 1 some are open, 2 usage, 3 unknown.
    """
    from ..render.coverage import coverage_page, goal_sets

    with _apology(UNKNOWN):
        covered = {title: cover(s, w, g, b, least=False) for title, s, w, g, b in goal_sets()}
    if markdown:
        print(coverage_page(covered), end="")
    else:
        for title, found in covered.items():
            counts = f"{len(found.reached)} reached, {len(found.unreachable)} proved unreachable"
            out.print(f"{title}: {counts}, {len(found.open)} open")
            for name in found.open:
                out.print(f"  ? {name}")
    sys.exit(1 if any(found.open for found in covered.values()) else 0)


@cli.command("mutants")
@click.option("--bound", type=click.IntRange(1), default=5, show_default=True, help="In calls.")
@click.option(
    "--scope",
    "size",
    type=click.IntRange(1, 26),
    nargs=3,
    default=(2, 2, 2),
    show_default=True,
    metavar="HASHES REQUESTS INPUTS",
)
@click.option("--cluster", metavar="ADDRESS", help="Run on this Dask cluster, not here.")
@click.option(
    "--by-clauses", is_flag=True, help="Judge every model by its clauses, not by vectors."
)
@click.option(
    "--kind", "kinds", multiple=True, help="With --by-clauses: only this kind, repeatable."
)
@click.option("--most", type=click.IntRange(1), help="With --by-clauses: of each kind, so many.")
@click.option("--seed", type=int, default=0, show_default=True, help="By which they are drawn.")
@click.option("--json", "as_data", is_flag=True, help="With --by-clauses: every design, as JSON.")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
def mutants_command(
    bound: int,
    size: tuple[int, int, int],
    cluster: str | None,
    by_clauses: bool,
    kinds: tuple[str, ...],
    most: int | None,
    seed: int,
    as_data: bool,
    models: tuple[str, ...],
) -> None:
    """Mutate every action of the managers; say which mutants the packaged vectors kill.

    Of each mutant that they do not kill, Z3 looks for calls that tell it from the specification;
    finding none is a proof that there are none in the scope, up to the bound.

    With --by-clauses, wrong designs of many kinds, of every MODEL, are judged by the clauses alone:
    condemned where some calls break one; else proved, or searched, to be the same; else alive.

    Exit code: 0 all killed or equivalent, 1 some survive, 2 usage, 3 unknown.
    """
    if by_clauses:
        sys.exit(judge_designs(models, kinds, most, seed, as_data))
    if models or kinds or most or as_data:
        raise click.UsageError("MODEL, --kind, --most and --json go with --by-clauses")
    from mmcache_vectors.manager import load

    from ..generate.mutants import survivors

    vectors = [load(path) for path in sorted((_vectors_package() / "vectors").glob("*.json"))]
    with _apology(UNKNOWN), workers(cluster) as executor:
        report = survivors(vectors, scope(*size), bound, executor)
    for line in report.lines():
        out.print(line)
    sys.exit(1 if report.alive else 0)


@cli.command("clauses")
@click.option("--markdown", is_flag=True, help="The whole reference page, as in docs/clauses.md.")
def clauses_command(markdown: bool) -> None:
    """Every clause: what it says, its formula, and the public reports it would have caught."""
    if markdown:
        from ..render.reference import reference_page

        print(reference_page(), end="")
        return
    for clause in CLAUSES.values():
        out.print(f"{clause.id} {clause.name}")
        out.print(f"    {clause.says}")
        for system in SPECIFIED.systems:
            for prop in system.stating(clause.id):
                at = f"{prop.action}: " if hasattr(prop, "action") else ""
                out.print(f"    {system.name}: {at}{formula(prop.formula)}")
        if clause.reports:
            out.print(f"    reports: {', '.join(clause.reports)}")


# --- shared ------------------------------------------------------------------------------------


@contextmanager
def _apology(code: int) -> Iterator[None]:
    """What may go wrong below, in words instead of a traceback."""
    try:
        yield
    except NoVerdict as error:
        err.print(f"unknown: {error}")
        sys.exit(UNKNOWN)
    except Disagreement as error:
        err.print(f"the solver and the interpreter disagree; this is a defect of mmcache: {error}")
        sys.exit(UNKNOWN)
    except ClusterError as error:
        err.print(str(error))
        sys.exit(UNKNOWN)
    except OSError as error:
        err.print(f"{error.filename}: {error.strerror}")
        sys.exit(code)
