"""The world around the cache: hashes, requests, the inputs of requests, and sizes."""

from __future__ import annotations

from ..kernel.system import Axiom, Scope
from ..kernel.terms import INT, Sort, Term, all_of, constant, forall, function

__all__ = [
    "HASH",
    "INPUT",
    "REQUEST",
    "SIZES",
    "TOKENS",
    "WORLD",
    "capacity",
    "end_of",
    "first_token",
    "hash_of",
    "inputs_of",
    "lookahead",
    "num_tokens",
    "overlaps",
    "owner",
    "position",
    "rank",
    "scope",
    "scopes_of",
    "scopes_up_to",
    "size",
    "tokens_of",
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

# --- tokens ------------------------------------------------------------------------------------

lookahead = constant("lookahead", INT)
"""How many tokens past the scheduled ones a drafter reads."""
first_token = function("first_token", INPUT, INT)
num_tokens = function("num_tokens", INPUT, INT)
tokens_of = function("tokens_of", REQUEST, INT)
"""All tokens that a request may come to: prompt and output."""
rank = function("rank", REQUEST, INT)
"""An order of the requests: the first of several that could do something does it."""

TOKENS = (
    Axiom("lookahead_is_not_negative", lookahead >= 0),
    Axiom(
        "an_input_lies_within_the_tokens_of_its_request",
        forall(
            INPUT,
            lambda i: all_of(
                first_token(i) >= 0,
                num_tokens(i) >= 1,
                first_token(i) + num_tokens(i) <= tokens_of(owner(i)),
            ),
        ),
    ),
    Axiom(
        "inputs_follow_one_another",
        forall(
            INPUT,
            INPUT,
            lambda i, j: ((owner(i) == owner(j)) & (position(i) < position(j))).implies(
                first_token(i) + num_tokens(i) <= first_token(j)
            ),
        ),
    ),
    Axiom(
        "no_two_requests_have_one_rank",
        forall(REQUEST, REQUEST, lambda p, q: (rank(p) == rank(q)).implies(p == q)),
    ),
)


def end_of(i: Term) -> Term:
    """The position after the input's last token."""
    return first_token(i) + num_tokens(i)


def overlaps(i: Term, begin: Term, end: Term) -> Term:
    """Whether the input has a token at a position from `begin` on and before `end`."""
    return all_of(begin < end, first_token(i) < end, begin < end_of(i))


def scope(hashes: int, requests: int, items: int) -> Scope:
    """A universe of hashes A, B, ..., and requests r1, r2, ... with inputs r1/0, r1/1, ...

    Sizes, capacity and which input carries which hash are left to the search. A token of text goes
    before each input of two tokens, and one after them all; that is of use to those systems only
    that know of tokens.
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
            "first_token": {i: 1 + 3 * p for i, (_, p) in inputs.items()},
            "num_tokens": dict.fromkeys(inputs, 2),
            "tokens_of": dict.fromkeys(rs, 1 + 3 * items),
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
