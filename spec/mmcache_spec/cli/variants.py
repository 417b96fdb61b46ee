"""`mmcache-spec variants`: the known designs, and what is expected of each."""

from __future__ import annotations

import sys

import click

from ..campaign import workers
from ..checks.bounded import along, shortest
from ..checks.proof import Proof, prove
from ..checks.unrolling import Start
from ..evaluate.text import formula
from ..generate.hints import hints_for
from ..generate.record import on_record
from ..model.variants import VARIANTS, Variant
from ..model.world import scopes_of, scopes_within
from . import jobs
from .common import SMALL, UNKNOWN, apology, not_shown, out
from .progress import progress_line
from .refute import livelock

__all__ = ["variants_command"]


@click.command("variants")
@click.option("--check", is_flag=True, help="Recompute everything; fail on any difference.")
@click.option(
    "--follow",
    is_flag=True,
    help="Of what Z3 has to unroll, follow the expected counterexamples; look for no shorter ones.",
)
@click.argument("models", nargs=-1, metavar="[MODEL]...")
def variants_command(check: bool, follow: bool, models: tuple[str, ...]) -> None:
    """List every variant, or those of each MODEL, with its expected verdict; or check them.

    Of progress, and of the engine from the start of a pass, to look for shorter counterexamples
    takes many minutes, to follow the expected ones seconds. All others are looked for in any case.

    Exit code: 0 as expected, 1 not as expected, 2 usage, 3 unknown.
    """
    # To list all of them no system has to be made.
    known = {s.name for v in VARIANTS.values() for s in v.systems} if models else set()
    if strangers := [m for m in models if m not in known]:
        raise click.UsageError(f"no model {strangers[0]!r}; there are: {', '.join(sorted(known))}")
    chosen = {
        name: v
        for name, v in VARIANTS.items()
        if not models or {s.name for s in v.systems} <= set(models)
    }
    if not check:
        for variant in chosen.values():
            _print_variant(variant)
        return
    bad = 0
    with apology(UNKNOWN), progress_line() as say, workers() as executor:
        found = [(v, executor.submit(_recompute, name, follow)) for name, v in chosen.items()]
        for variant, job in found:
            say(f"{variant.name}, of {len(chosen)} variants")
            differences = job.result()
            bad += bool(differences)
            out.print(f"{'✗' if differences else '✓'} {variant.name}")
            for difference in differences:
                out.print(f"    {difference}")
    out.print(f"{len(chosen) - bad} of {len(chosen)} variants as expected")
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
        if actions is not None:
            out.print(f"      --from {origin}, {len(actions)}: {', '.join(actions)}")


def _recompute(name: str, follow: bool) -> list[str]:
    """What is not as expected of this variant."""
    variant = VARIANTS[name]
    parts = [prove(s, SMALL, hints=hints_for(s.name)) for s in variant.systems]
    expected = variant.expected
    right = expected is None
    parts += [jobs.vacuity_of(name, k, conditions=right) for k in range(len(variant.systems))]
    proof = Proof.merged(parts, 0)
    differences = [f"not reachable: {n}" for n in proof.unreachable]
    differences += [f"wrong lemma: {formula(lemma)}" for lemma in proof.false_lemmas]
    differences += [f"taken for granted: {not_shown(thing)}" for thing in proof.unfounded]
    differences += [f"unknown: {o.obligation.label}" for o in proof.undecided]
    if expected is None:
        if proof.verdict != "proved":
            differences.append(f"expected to be proved, but {proof.verdict}")
        elif not on_record(variant.systems):
            differences.append(f"not on record: run mmcache-spec prove {name} --record")
        return differences
    if set(proof.refuted_clauses) != set(expected.breaks):
        got = ", ".join(proof.refuted_clauses) or "nothing"
        differences.append(f"expected to break {', '.join(expected.breaks)}, but breaks {got}")
    origins: tuple[tuple[Start, tuple[str, ...] | None], ...] = (
        ("init", expected.from_init),
        ("pass", expected.from_pass),
    )
    for origin, actions in origins:
        if actions is None:
            continue
        name_of = variant.system.name
        if follow and (name_of == "progress" or (name_of == "engine" and origin == "pass")):
            # What Z3 unrolls has as many of everything as the scope says.
            within = scopes_of(name_of) if name_of == "progress" else scopes_within(3, 3, 1)
            found = along(variant.system, within, origin, actions, variant.aims_at)
        else:
            scopes = scopes_of(name_of)
            found = shortest(variant.system, scopes, origin, 13, variant.aims_at)
        got_actions = () if found is None else found.actions
        if got_actions != actions:
            differences.append(
                f"--from {origin}: expected {', '.join(actions)}; got {', '.join(got_actions)}"
            )
        lasso = None if found is None else livelock(variant, found)
        if origin == "init" and expected.lasso != (lasso and lasso.actions):
            differences.append(f"lasso: expected {expected.lasso}; got {lasso and lasso.actions}")
    return differences
