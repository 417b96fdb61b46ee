"""Wrong designs: a system with something wrong on purpose, in many ways.

A mutant differs at one point. What a person gets wrong is seldom that small: a call does nothing,
or does what another call should; a variable and its bookkeeping are wrong in the same way; the
wrong request is meant. Each kind of these is generated here, from the definition alone. The same
system gives the same designs, in the same order, under the same names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from .changes import Made, bare, by_action
from .system import TransitionSystem
from .terms import alpha_form
from .wrong_actions import copied, emptied, never_again
from .wrong_alike import consistent, double, everywhere, together
from .wrong_points import answers, beginnings, misdirected, negated, single, swapped, values

__all__ = ["KINDS", "WrongDesign", "count", "names", "wrong_designs"]

KINDS: dict[str, Callable[[TransitionSystem], Made]] = {
    "single": single,
    "negated": by_action(negated),
    "swapped": by_action(swapped),
    "misdirected": by_action(misdirected),
    "answer": by_action(answers),
    "value": by_action(values),
    "initial": beginnings,
    "emptied": by_action(emptied),
    "never": never_again,
    "copied": by_action(copied),
    "together": by_action(together),
    "consistent": by_action(consistent),
    "everywhere": everywhere,
    "double": double,
}
"""Each kind, and what makes the wrong designs of it: by name, each with how to build it."""


@dataclass(frozen=True)
class WrongDesign:
    """`name` says what is wrong and where; `kind` is a key of `KINDS`."""

    kind: str
    name: str
    system: TransitionSystem


def count(system: TransitionSystem, kind: str) -> int:
    """How many there are of the kind; some of them may turn out to be the original."""
    return len(_listed(system, kind))


def names(system: TransitionSystem, kind: str) -> Iterator[str]:
    """What the designs of the kind are called."""
    return (name for name, _ in _once(_of_kind(system, kind)))


@lru_cache(maxsize=2)
def _listed(
    system: TransitionSystem, kind: str
) -> list[tuple[str, Callable[[], TransitionSystem]]]:
    """All of the kind; whoever asks for one part after the other has them made once."""
    return list(_once(_of_kind(system, kind)))


def wrong_designs(
    system: TransitionSystem,
    kinds: Iterable[str],
    most: int | None = None,
    seed: int = 0,
    part: slice = slice(None),
) -> Iterator[WrongDesign]:
    """The wrong designs of these kinds; of each kind no more than `most`, drawn by the seed.

    With a `part`, only that part of each kind's list.

    Raises:
        ValueError: a kind that is not in `KINDS`.
    """
    for kind in kinds:
        found = _listed(system, kind)
        if most is not None and len(found) > most:
            chance = random.Random(f"{seed} {system.name} {kind}")
            kept = sorted(chance.sample(range(len(found)), most))
            found = [found[k] for k in kept]
        for name, make in found[part]:
            design = make()
            if not _says_the_same(system, design):
                yield WrongDesign(kind, name, design)


def _of_kind(system: TransitionSystem, kind: str) -> Made:
    if kind not in KINDS:
        raise ValueError(f"no kind {kind!r} of wrong designs; there are: {', '.join(KINDS)}")
    return KINDS[kind](system)


def _says_the_same(system: TransitionSystem, design: TransitionSystem) -> bool:
    """Whether the change changes nothing: then there is nothing wrong."""
    pairs = [(a[1], b[1]) for a, b in zip(system.init, design.init, strict=True)]
    for one, other in zip(system.actions, design.actions, strict=True):
        if one is other:
            continue
        mine, theirs = bare(one), bare(other)
        if mine.modifies != theirs.modifies:
            return False
        after = theirs.updates
        pairs += [(term, after[v.name]) for v, term in mine.effect]
        if mine.returns is not None and theirs.returns is not None:
            pairs.append((mine.returns, theirs.returns))
    return all(a is b or alpha_form(a)[0] == alpha_form(b)[0] for a, b in pairs)


def _once(made: Made) -> Made:
    """Names are told apart by a number."""
    seen: dict[str, int] = {}
    for name, make in made:
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name} ({seen[name]})"), make
