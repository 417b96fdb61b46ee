"""The vectors of pairs of processor caches: shortest scripts against wrong decisions, and walks.

What a vector expects is what the specified pair answers, by the model; what it kills are the
variants that answer otherwise, or that visibly break a clause. No implementation is asked.

    python -m mmcache_spec.generate.pairs [--check] [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import mmcache_vectors
from mmcache_vectors import pair
from mmcache_vectors.pair import (
    ClearReceiver,
    ClearSender,
    Deliver,
    Invalidate,
    PairCall,
    PairParameters,
    PairProvenance,
    PairVector,
    ProcessRequest,
    Withdraw,
)

from ..campaign import workers
from ..kernel.digest import digest
from ..model.processor_cache import ProcessorCacheDesign, processor_cache
from ..model.processor_cache_variants import WRONG_PROCESSOR_CACHES
from ..model.variant import Variant
from ..pair import PairAnswer, PairSystem, State
from ..pair_steps import specified_steps
from .folder import drift, write_folder
from .pair_walks import SCRIPTS, WALKS, Walk, pair_world, serial, walked

SPECIFIED = ProcessorCacheDesign()

__all__ = ["FOLDER", "design_of", "generate", "main"]

FOLDER = Path(mmcache_vectors.__path__[0]) / "pair_vectors"

_SHOWN_BY_KEYS = frozenset({"P2", "P3", "P6", "P10"})
"""The clauses that can be seen broken before an answer is wrong, where keys are shown.

Not P5: it speaks of the channel, and a request that is lost may leave no trace on either side."""

_UNSEEN = frozenset({"processor_delivers_out_of_order"})
"""When a message arrives is the harness's to decide, so no pair can take this decision."""


def design_of(variant: Variant) -> ProcessorCacheDesign:
    """The decisions of a wrong processor cache."""
    (made_of,) = variant.made_of
    design: ProcessorCacheDesign = made_of.args[0]  # type: ignore[attr-defined]
    return design


# --- the worlds --------------------------------------------------------------------------------


_SMALL = (pair_world(1, "A"), pair_world(1, "A", "A"), pair_world(2, "A", "B", "C"))
_ARENAS = {
    "processor_walk_by_modality": (pair_world(3, "AbC"), pair_world(3, "AbC", "D", "E", "b")),
    "processor_inserts_without_care": (pair_world(2, "A", "B", "CA"),),
    "processor_touches_before_it_inserts": (pair_world(1, "A", "BA"),),
    "processor_asserts_what_it_evicted": (pair_world(1, "A", "BA"), pair_world(3, "A", "BCDA")),
    "processor_rejected_hits_are_lost": (pair_world(2, "A", "B", "C"),),
    "processor_receiver_hit_is_no_use": (pair_world(2, "A", "B", "C"),),
    "processor_stores_what_does_not_fit": (pair_world(1, "A", sizes="A2"),),
    "processor_absent_key_enters_the_order": (pair_world(1, "A", sizes="A2"),),
}
"""The small worlds in which the shortest scripts are looked for, where not in the usual ones.

A request fits in them, but where the decision is about one that does not.
"""

_SCRIPTED = frozenset({"processor_walk_by_modality"})
"""Where the shortest script without keys is an accident: the items that are spared are then not
those that are taken later. A script below is what happens to users."""

_LONGEST = 10
_MOST_STATES = 3_000
_MOST_FLYING = 2


# --- the shortest scripts ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Node:
    right: State
    wrong: State
    calls: tuple[PairCall, ...]
    withdrawn: int = 0
    clears: int = 0
    """How many clears have come to P0 and not to P1 yet."""


def _choices(
    node: _Node, world: PairParameters, design: ProcessorCacheDesign
) -> Iterator[PairCall]:
    """What a harness may do next, of what the decisions are about. A clear comes to P0 first."""
    flying = [r for r, _ in node.right.line]
    for request in world.requests:
        if request.request_id not in flying and len(flying) < _MOST_FLYING:
            yield ProcessRequest(request.request_id)
    arriving = [r for r, withdrawn in node.right.line if not withdrawn]
    if arriving:
        yield Deliver(arriving[0])
    if node.withdrawn == 0 and design.rejected != SPECIFIED.rejected:
        yield from map(Withdraw, arriving)
    if design.miss != SPECIFIED.miss:
        for identifier in dict.fromkeys(i.identifier for r in world.requests for i in r.items):
            yield Invalidate(identifier)
    if design.clear != SPECIFIED.clear:
        yield ClearReceiver() if node.clears else ClearSender()


def _shortest(
    design: ProcessorCacheDesign, world: PairParameters, longest: int, *, by_keys: bool
) -> tuple[PairCall, ...] | None:
    """The first script, by length, that tells the design from the specified pair in this world.

    None where there is none that is shorter than `longest`, or too many states come before it.
    """
    right, wrong = PairSystem(world), PairSystem(world, design, judged=by_keys)
    start = _Node(right.initial(), wrong.initial(), ())
    seen = {(right.key(start.right), wrong.key(start.wrong), 0, 0)}
    layer = [start]
    while layer and len(layer[0].calls) + 1 < longest and len(seen) < _MOST_STATES:
        after: list[_Node] = []
        for node in layer:
            for call in _choices(node, world, design):
                due, got = right.call(node.right, call), wrong.call(node.wrong, call)
                if due is None or got is None:
                    continue
                calls = (*node.calls, call)
                if _differ(due[0], got[0]) or (by_keys and got[0].broke & _SHOWN_BY_KEYS):
                    return calls
                clears = node.clears + isinstance(call, ClearSender)
                clears -= isinstance(call, ClearReceiver)
                withdrawn = node.withdrawn + isinstance(call, Withdraw)
                key = (right.key(due[1]), wrong.key(got[1]), withdrawn, clears)
                if key not in seen:
                    seen.add(key)
                    after.append(_Node(due[1], got[1], calls, withdrawn, clears))
        layer = after
    return None


def _differ(due: PairAnswer, got: PairAnswer) -> bool:
    return due != got


# --- vectors -----------------------------------------------------------------------------------


def _can_tell(design: ProcessorCacheDesign, calls: Sequence[PairCall]) -> bool:
    """Whether the calls come to what the decisions are about; if not, it does as is specified."""
    kinds = {type(call) for call in calls}
    about = {
        Withdraw: design.rejected != SPECIFIED.rejected,
        ClearSender: design.clear != SPECIFIED.clear,
        Invalidate: design.miss != SPECIFIED.miss,
    }
    needed = {kind for kind, is_it in about.items() if is_it}
    return not needed or bool(needed & kinds)


def _outcome(
    design: ProcessorCacheDesign, world: PairParameters, calls: Sequence[PairCall]
) -> tuple[bool, tuple[str, ...]]:
    """Whether the design can be told from the specified pair, and what it breaks until then."""
    right, wrong = PairSystem(world), PairSystem(world, design, judged=True)
    a, b = right.initial(), wrong.initial()
    for call in calls:
        due, got = right.call(a, call), wrong.call(b, call)
        if due is None or got is None:
            return False, ()
        if _differ(due[0], got[0]) or got[0].broke & _SHOWN_BY_KEYS:
            return True, tuple(sorted(got[0].broke, key=lambda c: int(c[1:])))
        a, b = due[1], got[1]
    return False, ()


@lru_cache(maxsize=1)
def _digest() -> str:
    return digest(processor_cache())


def _vector(
    name: str, says: str, variant: str, world: PairParameters, calls: Sequence[PairCall]
) -> PairVector:
    steps = specified_steps(world, calls)
    able = [v for v in _wrong() if _can_tell(design_of(v), calls)]
    told = {v.name: _outcome(design_of(v), world, calls) for v in able}
    kills = tuple(n for n, (apart, _) in told.items() if apart)
    broken = told[variant][1] if variant in told else ()
    if variant == "specified":
        broken = tuple({clause for name in kills for clause in told[name][1]})
    clauses = tuple(sorted(broken, key=lambda c: int(c[1:])))
    return PairVector(
        pair.FORMAT,
        pair.FORMAT_VERSION,
        pair.content_id(name, world, steps),
        says,
        variant,
        clauses,
        kills,
        PairProvenance(_digest()),
        world,
        steps,
    )


def _wrong() -> list[Variant]:
    return [v for v in WRONG_PROCESSOR_CACHES if v.name not in _UNSEEN]


def _of_variant(variant: Variant) -> Iterator[PairVector]:
    """Its shortest script, and its shortest where no keys are shown, if that is another."""
    found: dict[tuple[PairCall, ...], tuple[PairParameters, str]] = {}
    for by_keys, suffix in ((True, ""), (False, "-unseen")):
        if not by_keys and variant.name in _SCRIPTED:
            continue
        best: tuple[PairParameters, tuple[PairCall, ...]] | None = None
        for world in _ARENAS.get(variant.name, _SMALL):
            longest = len(best[1]) if best else _LONGEST
            calls = _shortest(design_of(variant), world, longest, by_keys=by_keys)
            if calls is not None:
                best = world, calls
        if best:
            found.setdefault(best[1], (best[0], suffix))
    for calls, (world, suffix) in found.items():
        name = f"pair-{variant.name.removeprefix('processor_').replace('_', '-')}{suffix}"
        yield _vector(name, f"A pair fails here if {variant.says}.", variant.name, world, calls)


def _of_walk(walk: Walk) -> list[PairVector]:
    world, calls = walked(walk)
    name, says = f"pair-walk-{walk.name}", f"A walk: {walk.says}."
    return [_vector(name, says, "specified", world, calls)]


def _of_named(name: str) -> list[PairVector]:
    (variant,) = (v for v in _wrong() if v.name == name)
    return list(_of_variant(variant))


def generate(executor: Executor) -> list[PairVector]:
    """All pair vectors, sorted by id. The result does not depend on how the work is done."""
    jobs = [executor.submit(_of_walk, walk) for walk in WALKS]
    jobs = [*(executor.submit(_of_named, v.name) for v in _wrong()), *jobs]
    found = [vector for job in jobs for vector in job.result()]
    found += [_vector(n, says, "specified", w, serial(rs)) for n, says, w, rs in SCRIPTS]
    distinct = {(v.parameters, v.steps): v for v in reversed(found)}
    return sorted(distinct.values(), key=lambda v: v.id)


def main(arguments: Sequence[str]) -> int:
    """Write the vectors, or check that they are what would be written. The exit code."""
    named = [Path(word) for word in arguments if word != "--check"]
    folder = named[0] if named else FOLDER
    with workers() as executor:
        files = {f"{vector.id}.json": pair.encode(vector) for vector in generate(executor)}
    if "--check" in arguments:
        wrong = list(drift(folder, files))
        told = wrong or [f"{len(files)} pair vectors are as generated"]
        sys.stdout.write("".join(f"{line}\n" for line in told))
        return 1 if wrong else 0
    write_folder(folder, files, lambda content: pair.FORMAT.encode() in content)
    sys.stdout.write(f"{len(files)} pair vectors in {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
