"""The world around the cache: hashes, requests, the inputs of requests, and sizes."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

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
    "exact_name",
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
    "scopes_of_few_inputs",
    "scopes_up_to",
    "scopes_within",
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
    return _universe(_exactly(hashes, requests, items), hashes, (items,) * requests)


def _exactly(hashes: int, requests: int, items: int) -> str:
    return f"{hashes} hashes, {requests} requests, {items} inputs each"


def exact_name(scope: Scope) -> str:
    """What the scope has, where each of its requests has as many inputs; no less is meant."""
    hashes, requests, inputs = (len(scope.universe[s.name]) for s in (HASH, REQUEST, INPUT))
    return _exactly(hashes, requests, inputs // requests if requests else 0)


def _universe(name: str, hashes: int, items: tuple[int, ...]) -> Scope:
    """As `scope`, but each request has its own number of inputs."""
    rs = tuple(f"r{k + 1}" for k in range(len(items)))
    inputs = {f"{r}/{p}": (r, p) for r, count in zip(rs, items, strict=True) for p in range(count)}
    return Scope(
        name=name,
        universe={
            "Hash": tuple(chr(ord("A") + k) for k in range(hashes)),
            "Request": rs,
            "Input": tuple(inputs),
        },
        fixed={
            "owner": {i: r for i, (r, _) in inputs.items()},
            "position": {i: p for i, (_, p) in inputs.items()},
            "inputs_of": dict(zip(rs, items, strict=True)),
            "first_token": {i: 1 + 3 * p for i, (_, p) in inputs.items()},
            "num_tokens": dict.fromkeys(inputs, 2),
            "tokens_of": {r: 1 + 3 * n for r, n in zip(rs, items, strict=True)},
        },
        at_least={"capacity": 1, "size": 1},
        interchangeable=("Hash", "Request") if len(set(items)) <= 1 else ("Hash",),
    )


def scopes_up_to(hashes: int, requests: int, inputs: int) -> list[Scope]:
    """Every universe of no more than these: those with the fewest elements first.

    `inputs` are those of one request, and requests may have different numbers of them.
    """
    name = (
        f"up to {_count(hashes, 'hash', 'hashes')} and {_count(requests, 'request', 'requests')} "
        f"of up to {_count(inputs, 'input', 'inputs')}"
    )
    counts = [
        items
        for number in range(requests + 1)
        for items in combinations_with_replacement(range(inputs, -1, -1), number)
    ]
    sizes = [(h, items) for h in range(hashes + 1) for items in counts]
    sizes.sort(key=lambda s: (s[0] + len(s[1]) + sum(s[1]), len(s[1]), sum(s[1]), s))
    return [_universe(name, h, items) for h, items in sizes]


def scopes_of_few_inputs(hashes: int, requests: int, inputs: int) -> list[Scope]:
    """As `scopes_up_to`, but all requests together have no more than these inputs."""
    name = (
        f"up to {_count(hashes, 'hash', 'hashes')}, and {_count(inputs, 'input', 'inputs')} "
        f"of up to {_count(requests, 'request', 'requests')}"
    )
    wide = scopes_up_to(hashes, requests, inputs)
    return [replace(s, name=name) for s in wide if len(s.universe[INPUT.name]) <= inputs]


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def scopes_within(hashes: int, requests: int, inputs: int) -> list[Scope]:
    """This scope, after the small ones within it where most examples live.

    For systems that Z3 has to unroll, in one scope after the other.
    """
    small = ((2, 2, inputs), (3, 2, inputs))
    within = [s for s in small if s[0] < hashes and s[1] <= requests]
    return [scope(*s) for s in (*within, (hashes, requests, inputs))]


def scopes_of(system: str, size: tuple[int, int, int] | None = None) -> list[Scope]:
    """Where the counterexamples of this system are looked for: up to this size, or by default."""
    if system == "engine":
        return scopes_up_to(*size or (2, 2, 1))
    if system == "progress":
        return scopes_within(*size) if size else [scope(2, 1, 2), scope(2, 2, 2)]
    if system == "processor_cache":
        return scopes_up_to(*size) if size else scopes_of_few_inputs(2, 2, 2)
    return scopes_up_to(*size or (3, 2, 2))
