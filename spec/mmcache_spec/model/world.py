"""The world around the cache: hashes, requests, the inputs of requests, and sizes."""

from __future__ import annotations

from ..kernel.system import Axiom, Scope
from ..kernel.terms import INT, Sort, constant, forall, function

__all__ = [
    "HASH",
    "INPUT",
    "REQUEST",
    "SIZES",
    "WORLD",
    "capacity",
    "hash_of",
    "inputs_of",
    "owner",
    "position",
    "scope",
    "scopes_of",
    "scopes_up_to",
    "size",
]

HASH, REQUEST, INPUT = Sort("Hash"), Sort("Request"), Sort("Input")

capacity = constant("capacity", INT)
size = function("size", HASH, INT)
hash_of = function("hash_of", INPUT, HASH)
owner = function("owner", INPUT, REQUEST)
position = function("position", INPUT, INT)
inputs_of = function("inputs_of", REQUEST, INT)

SIZES = (
    Axiom("capacity_is_not_negative", capacity >= 0),
    Axiom("sizes_are_not_negative", forall(HASH, lambda h: size(h) >= 0)),
)

WORLD = (
    *SIZES,
    Axiom("requests_have_a_number_of_inputs", forall(REQUEST, lambda r: inputs_of(r) >= 0)),
    Axiom(
        "a_position_lies_within_its_request",
        forall(INPUT, lambda i: (position(i) >= 0) & (position(i) < inputs_of(owner(i)))),
    ),
    Axiom(
        "a_request_has_one_input_at_a_position",
        forall(
            INPUT,
            INPUT,
            lambda i, j: ((owner(i) == owner(j)) & (position(i) == position(j))).implies(i == j),
        ),
    ),
)


def scope(hashes: int, requests: int, items: int) -> Scope:
    """A universe of hashes A, B, ..., and requests r1, r2, ... with inputs r1/0, r1/1, ...

    Sizes, capacity and which input carries which hash are left to the search.
    """
    rs = tuple(f"r{k + 1}" for k in range(requests))
    inputs = {f"{r}/{p}": (r, p) for r in rs for p in range(items)}
    return Scope(
        name=f"{hashes} hashes, {requests} requests, {items} inputs each",
        universe={
            "Hash": tuple(chr(ord("A") + k) for k in range(hashes)),
            "Request": rs,
            "Input": tuple(inputs),
        },
        fixed={
            "owner": {i: r for i, (r, _) in inputs.items()},
            "position": {i: p for i, (_, p) in inputs.items()},
            "inputs_of": dict.fromkeys(rs, items),
        },
        at_least={"capacity": 1, "size": 1},
        interchangeable=("Hash", "Request"),
    )


def scopes_up_to(hashes: int, requests: int, inputs: int) -> list[Scope]:
    """This scope, after the small ones within it where most examples live."""
    small = ((2, 2, inputs), (3, 2, inputs))
    within = [s for s in small if s[0] < hashes and s[1] <= requests]
    return [scope(*s) for s in (*within, (hashes, requests, inputs))]


def scopes_of(system: str) -> list[Scope]:
    """Where the counterexamples of this system are looked for by default."""
    if system == "progress":
        return [scope(2, 1, 2), scope(2, 2, 2)]
    return scopes_up_to(3, 3, 1) if system == "engine" else scopes_up_to(4, 3, 2)
