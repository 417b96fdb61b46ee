"""Each vector in worlds that are larger, and in which the specification answers the same.

The specification reads of names only whether two are one, of positions only their order, and of
numbers only which of two sums of sizes is larger. So its answers are the same up to names and
factors where every name is replaced by another, positions move and keep their order, and sizes,
capacity and budgets are multiplied by one factor. It speaks of one manager; another one beside it
changes nothing. An implementation may do otherwise: it truncates names, counts in 32 bits, has
room for so many positions, or shares between managers what each should have by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from mmcache_vectors.manager import (
    Call,
    CanAllocate,
    GetFreedMmHashes,
    Item,
    Observed,
    Parameters,
    Request,
    Reset,
)

from ..targets.protocol import Answer, Case

__all__ = ["BESIDE", "FACTOR", "STRETCHES", "Stretched", "companions", "stretched"]

FACTOR = 1 << 33
"""What numbers are multiplied by: of the product, 32 bits keep nothing."""

GAP = 256
"""How far apart two positions of a request that were neighbours come to be."""

LONG = "registry.example/images/sha256-" + "0123456789abcdef" * 7 + "-"
"""What all the long names begin with and end with: they differ in the middle only."""

BESIDE = "other managers alive in the same process"
"""The name of the one way that is no change of the vector."""


@dataclass(frozen=True)
class Stretched:
    """A vector in a larger world, and the way back from its answers."""

    name: str
    case: Case
    back: Callable[[Answer], Answer]
    """What the answer says, in the names and numbers of the vector; as it is where it says
    something that has no counterpart there."""


def stretched(case: Case) -> Iterator[Stretched]:
    """The case in every larger world that differs from its own."""
    for name, stretch in STRETCHES.items():
        longer, back = stretch(case)
        if longer.parameters != case.parameters:
            yield Stretched(name, longer, back)


def companions(case: Case) -> tuple[Case, ...]:
    """The managers to be alive beside the one of the case: one in step with it, one a call behind.

    So the same names are in use everywhere at once. What each should answer is what the vector
    says: the manager that is behind begins with a report, which is empty; a case without reports
    has only the first.
    """
    if not any(isinstance(call, GetFreedMmHashes) for call in case.calls):
        return (case,)
    behind = msgspec.structs.replace(case, calls=(GetFreedMmHashes(), *case.calls))
    return case, behind


# --- names -------------------------------------------------------------------------------------


def _long_names(case: Case) -> tuple[Case, Callable[[Answer], Answer]]:
    return _renamed(case, lambda kind, name, number: f"{LONG}{name}{LONG}")


def _like_names(case: Case) -> tuple[Case, Callable[[Answer], Answer]]:
    """In one vector all in the same way, in one of three, by the letters of its id."""
    way = (_in_case, _in_spaces, _in_order)[sum(case.id.encode()) % 3]
    return _renamed(case, lambda kind, name, number: way(kind, number))


def _in_case(kind: str, number: int) -> str:
    letters = enumerate("picture")
    return kind + "".join(x.upper() if number >> k & 1 else x for k, x in letters)


def _in_spaces(kind: str, number: int) -> str:
    return " " * number + f"{kind} b" + " " * (100 - number)


def _in_order(kind: str, number: int) -> str:
    letters = kind + "0123456789abcdefghijklmnopqrstuvwxyz"
    return letters[number:] + letters[:number]


def _renamed(
    case: Case, new_name: Callable[[str, str, int], str]
) -> tuple[Case, Callable[[Answer], Answer]]:
    """Every name replaced: `new_name` gets `h` or `r`, the name, and its number."""
    parameters = case.parameters
    hashes = sorted({item.identifier for r in parameters.requests for item in r.items})
    requests = [r.request_id for r in parameters.requests]
    to_hash = {name: new_name("h", name, k) for k, name in enumerate(hashes)}
    to_request = {name: new_name("r", name, k) for k, name in enumerate(requests)}
    back_to_hash = {long: name for name, long in to_hash.items()}
    back_to_request = {long: name for name, long in to_request.items()}
    renamed = tuple(
        Request(
            to_request[r.request_id],
            tuple(Item(to_hash[i.identifier], i.num_embeds) for i in r.items),
        )
        for r in parameters.requests
    )
    calls = tuple(_replaced(call, request=to_request.__getitem__) for call in case.calls)
    longer = Case(case.id, case.manager, Parameters(parameters.cache_size, renamed), calls)

    def names(longs: tuple[str, ...], back: dict[str, str]) -> tuple[str, ...]:
        return tuple(back.get(long, long) for long in longs)

    def undo(answer: Answer) -> Answer:
        seen = answer.observed
        returns = answer.returns
        cached = None
        if seen.cached is not None:
            cached = {
                back_to_hash.get(h, h): tuple(sorted(names(rs, back_to_request)))
                for h, rs in seen.cached.items()
            }
        held = None
        if seen.held is not None:
            held = {back_to_request.get(r, r): ks for r, ks in seen.held.items()}
        observed = Observed(
            seen.num_free_slots,
            seen.num_freeable_slots,
            cached,
            None if seen.freeable is None else names(seen.freeable, back_to_hash),
            held,
        )
        told = (
            tuple(sorted(names(returns, back_to_hash))) if isinstance(returns, tuple) else returns
        )
        return Answer(told, observed, answer.error)

    return longer, undo


# --- positions ---------------------------------------------------------------------------------


def _moved_positions(case: Case) -> tuple[Case, Callable[[Answer], Answer]]:
    parameters = case.parameters
    nobody = Item(f"{LONG}nobody", 1)

    def moved(position: int) -> int:
        return GAP * position + 1

    requests = []
    for request in parameters.requests:
        items = [nobody] * (moved(len(request.items) - 1) + 1 if request.items else 0)
        for place, item in enumerate(request.items):
            items[moved(place)] = item
        requests.append(Request(request.request_id, tuple(items)))
    calls = tuple(_replaced(call, input_id=moved) for call in case.calls)
    longer = Case(case.id, case.manager, Parameters(parameters.cache_size, tuple(requests)), calls)

    def position(at: int) -> int:
        return (at - 1) // GAP if at % GAP == 1 else at

    def undo(answer: Answer) -> Answer:
        held = answer.observed.held
        if held is None:
            return answer
        back = {r: tuple(position(k) for k in ks) for r, ks in held.items()}
        observed = msgspec.structs.replace(answer.observed, held=back)
        return msgspec.structs.replace(answer, observed=observed)

    return longer, undo


# --- numbers -----------------------------------------------------------------------------------


def _large_numbers(case: Case) -> tuple[Case, Callable[[Answer], Answer]]:
    parameters = case.parameters
    requests = tuple(
        Request(r.request_id, tuple(Item(i.identifier, i.num_embeds * FACTOR) for i in r.items))
        for r in parameters.requests
    )
    calls = tuple(
        CanAllocate(
            call.request,
            call.input_id,
            call.encoder_compute_budget * FACTOR,
            call.num_embeds_to_schedule * FACTOR,
        )
        if isinstance(call, CanAllocate)
        else call
        for call in case.calls
    )
    capacity = parameters.cache_size * FACTOR
    longer = Case(case.id, case.manager, Parameters(capacity, requests), calls)

    def number(large: int | None) -> int | None:
        return large // FACTOR if large is not None and large % FACTOR == 0 else large

    def undo(answer: Answer) -> Answer:
        seen = answer.observed
        observed = msgspec.structs.replace(
            seen,
            num_free_slots=number(seen.num_free_slots),
            num_freeable_slots=number(seen.num_freeable_slots),
        )
        return msgspec.structs.replace(answer, observed=observed)

    return longer, undo


STRETCHES: dict[str, Callable[[Case], tuple[Case, Callable[[Answer], Answer]]]] = {
    "long names that differ in the middle only": _long_names,
    "names that differ in case, in spaces or in the order of their letters only": _like_names,
    f"positions {GAP} apart": _moved_positions,
    f"sizes and capacity times 2**{FACTOR.bit_length() - 1}": _large_numbers,
}


def _replaced(
    call: Call,
    *,
    request: Callable[[str], str] | None = None,
    input_id: Callable[[int], int] | None = None,
) -> Call:
    """The call with another request, or another position."""
    if isinstance(call, GetFreedMmHashes | Reset):
        return call
    if request is not None:
        call = msgspec.structs.replace(call, request=request(call.request))
    position: int | None = getattr(call, "input_id", None)
    if input_id is not None and position is not None:
        call = msgspec.structs.replace(call, input_id=input_id(position))
    return call
