"""What lemmas take for granted is shown: sets are finite, and weights not negative."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import z3
from click.testing import CliRunner

from mmcache_spec.checks import foundations
from mmcache_spec.checks.foundations import few_for_each_value, is_never_negative, unfounded
from mmcache_spec.checks.proof import Proof
from mmcache_spec.cli.app import cli
from mmcache_spec.evaluate.interpreter import Interpreter, World
from mmcache_spec.evaluate.text import formula
from mmcache_spec.evaluate.unbounded import Unbounded
from mmcache_spec.kernel import finiteness
from mmcache_spec.kernel.finiteness import holds_sets, is_finite, not_shown_finite
from mmcache_spec.kernel.lemmas import has_earliest, has_first, monotone
from mmcache_spec.kernel.system import Action, Invariant, TransitionSystem
from mmcache_spec.kernel.terms import (
    BOOL,
    INT,
    TRUE,
    Function,
    MapSort,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    all_of,
    any_of,
    exists,
    forall,
    ite,
    largest,
    mapof,
    parameter,
    setof,
    state,
    total,
)
from mmcache_spec.model.variants import SPECIFIED, VARIANTS

HASH, REQUEST, INPUT = Sort("Hash"), Sort("Request"), Sort("Input")
cached, freed = state("cached", SetSort.of(HASH)), state("freed", SetSort.of(HASH))
references = state("references", SetSort.of(HASH, REQUEST))
held = state("held", SetSort.of(INPUT))
running = state("running", SetSort.of(REQUEST))
since = state("since", MapSort.of(HASH, INT))
some_hash, some_request = state("some_hash", HASH), state("some_request", REQUEST)
some_input = state("some_input", INPUT)
hash_of, owner = Function("hash_of", INPUT, HASH), Function("owner", INPUT, REQUEST)
size, position = Function("size", HASH, INT), Function("position", INPUT, INT)
holds_up = state("holds_up", MapSort.of(REQUEST, SetSort.of(HASH)))
n = parameter("n", INT)


# --- the systems -------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SPECIFIED.systems, ids=lambda s: s.name)
def test_nothing_is_taken_for_granted(system: TransitionSystem) -> None:
    assert unfounded(system) == []
    asked = [lemma for lemma in foundations.given_lemmas(system) if lemma.finite]
    assert asked, "a proof without lemmas shows nothing here"


def test_nor_in_any_variant() -> None:
    """Of every variant, effects and formulas; their lemmas are those of the same models."""
    for variant in VARIANTS.values():
        for system in variant.systems:
            few = few_for_each_value(system)
            for action in system.actions:
                for variable, value in action.effect:
                    assert not holds_sets(variable) or is_finite(value, few), action.name
                    assert list(not_shown_finite(value, few)) == []
            for claim in system.properties:
                assert list(not_shown_finite(claim.formula, few)) == []


def _changed(system: TransitionSystem, action: Action, changed: Action) -> TransitionSystem:
    return replace(system, actions=tuple(changed if a is action else a for a in system.actions))


def _complement(value: Term) -> Term:
    assert isinstance(value.sort, SetSort)
    if len(value.sort.elements) == 1:
        return setof(*value.sort.elements, lambda x: ~value.has(x))
    return setof(*value.sort.elements, lambda x, y: ~value.has(x, y))


SET_EFFECTS = [
    (system, action, k)
    for system in SPECIFIED.systems
    for action in system.actions
    for k, (variable, _) in enumerate(action.effect)
    if isinstance(variable.sort, SetSort) and variable.role != "ghost"
]
"""Of what a design says; the record is composed anew."""


def test_every_effect_that_makes_an_infinite_set_is_told() -> None:
    """Of every set that an action changes: its complement, and more than all of it."""
    tried = 0
    few_of = {system.name: few_for_each_value(system) for system in SPECIFIED.systems}
    for system, action, k in SET_EFFECTS:
        few = few_of[system.name]
        variable, value = action.effect[k]
        for infinite in (_complement(value), value.union(_complement(variable))):
            effect = (*action.effect[:k], (variable, infinite), *action.effect[k + 1 :])
            wrong = _changed(system, action, replace(action, effect=effect))
            if wrong.action(action.name).updates[variable.name] is not infinite:
                continue  # a record, which the kernel keeps whatever the action says
            tried += 1
            told = [u.where for u in foundations.infinite_states(wrong, few)]
            # What an observer notes of the set is infinite with it.
            notes = {
                f"{system.name}: {m.variable.name} after {action.name}" for m in system.monitors
            }
            assert [t for t in told if t not in notes] == [
                f"{system.name}: {variable.name} after {action.name}"
            ]
    assert tried > 150


def test_an_infinite_start_is_told() -> None:
    system = SPECIFIED.systems[0]
    (variable, value), *rest = system.init
    wrong = replace(system, init=((variable, _complement(value)), *rest))
    assert unfounded(wrong)[0].where == "ledger: cached after the initial state"


def test_an_infinite_answer_is_told() -> None:
    system = SPECIFIED.systems[0]
    report = system.action("get_freed_mm_hashes")
    assert report.returns is not None
    wrong = _changed(system, report, replace(report, returns=_complement(report.returns)))
    assert "ledger: the answer of get_freed_mm_hashes" in [u.where for u in unfounded(wrong)]


def test_a_total_over_all_hashes_is_told() -> None:
    system = SPECIFIED.systems[0]
    everything = setof(HASH, lambda h: TRUE)
    claim = Invariant("bounded", total(everything, size) <= 3)
    wrong = replace(system, invariants=(*system.invariants, claim))
    (told, *_) = unfounded(wrong)
    assert told.where == "ledger: a total, or a largest, in bounded"
    assert (told.says, formula(told.about)) == ("is not shown to be finite", "{ h | true }")


def test_a_lemma_about_all_hashes_is_told() -> None:
    system = SPECIFIED.systems[0]
    call = system.action("can_allocate")
    others = setof(HASH, lambda h: ~cached.has(h))
    for lemma in (
        monotone(cached, others, size),
        has_first(HASH, lambda h: ~cached.has(h), size),
    ):
        lemmas = {**call.lemmas, "eviction_never_runs_dry": (lemma,)}
        told = unfounded(_changed(system, call, replace(call, lemmas=lemmas)))
        assert f"ledger: a lemma {lemma.schema.name}" in [u.where for u in told]


def test_a_lemma_of_completeness_about_all_hashes_is_told() -> None:
    system = SPECIFIED.systems[0]
    others = setof(HASH, lambda h: ~cached.has(h))
    wrong = replace(system, uniqueness={"can_allocate": (monotone(cached, others, size),)})
    assert "ledger: a lemma monotone" in [u.where for u in unfounded(wrong)]


def test_the_earliest_of_infinitely_many_needs_keys_that_are_not_negative() -> None:
    system = SPECIFIED.systems[0]
    call = system.action("can_allocate")
    age = Function("age", HASH, INT)
    for key, expected in ((size, []), (age, ["age(x)"])):
        lemma = has_earliest(HASH, lambda h: ~cached.has(h), key)
        lemmas = {**call.lemmas, "eviction_never_runs_dry": (lemma,)}
        told = unfounded(_changed(system, call, replace(call, lemmas=lemmas)))
        assert [formula(u.about) for u in told] == expected


# --- the axioms --------------------------------------------------------------------------------


def _without(system: TransitionSystem, axiom: str) -> TransitionSystem:
    kept = tuple(a for a in system.axioms if a.name != axiom)
    assert len(kept) == len(system.axioms) - 1
    anything = tuple(replace(action, premises={}) for action in system.actions)
    return replace(system, axioms=kept, actions=anything)


def test_a_weight_that_may_be_negative_is_told() -> None:
    for system in SPECIFIED.systems:
        told = unfounded(_without(system, "sizes_are_not_negative"))
        weights = {formula(u.about) for u in told if "negative" in u.says}
        expected = {"encoder_decoder": {"embeds(x)"}, "engine": {"size(x)", "embeds(x)"}}
        assert weights == expected.get(system.name, {"size(x)"})


def test_a_weight_may_follow_from_two_axioms() -> None:
    system = SPECIFIED.systems[1]
    (embeds,) = (f for f in system.functions if f.name == "embeds")
    assert is_never_negative(system, embeds)
    assert not is_never_negative(_without(system, "an_input_has_the_size_of_its_hash"), embeds)


def test_a_request_has_finitely_many_inputs_because_they_stand_at_positions() -> None:
    system = SPECIFIED.systems[0]
    mine = setof(INPUT, lambda j: owner(j) == some_request)
    assert [f.name for f in few_for_each_value(system)] == ["owner"]
    assert is_finite(mine, few_for_each_value(system))
    for axiom in ("a_position_lies_within_its_request", "a_request_has_one_input_at_a_position"):
        few = few_for_each_value(_without(system, axiom))
        assert few == []
        assert not is_finite(mine, few)


def test_a_request_has_finitely_many_inputs_because_they_lie_apart_within_its_prompt() -> None:
    system = SPECIFIED.systems[3]
    assert "owner" in [f.name for f in few_for_each_value(system)]
    for axiom in ("an_item_lies_within_its_prompt", "items_of_a_request_lie_apart"):
        without = _without(system, axiom)
        assert few_for_each_value(without) == []
        assert {u.where for u in unfounded(without)} == {
            "progress: a lemma for_every",
            "progress: a lemma has_first",
            "progress: a lemma has_greatest",
            "progress: a total, or a largest, in chunk_is_the_largest_allowed",
            "progress: a total, or a largest, in schedule",
            "progress: cached after schedule",
            "progress: held after schedule",
            "progress: needed after schedule",
            "progress: stored after schedule",
        }


def test_what_is_taken_for_granted_is_not_proved() -> None:
    system = _without(SPECIFIED.systems[0], "sizes_are_not_negative")
    proof = Proof((), {}, (), 0.0, tuple(unfounded(system)))
    assert proof.verdict == "unknown"
    assert Proof((), {}, (), 0.0).verdict == "proved"
    assert Proof.merged([Proof((), {}, (), 0.0), proof], 0.0).verdict == "unknown"


def test_prove_says_what_it_takes_for_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    system = _without(SPECIFIED.systems[0], "sizes_are_not_negative")
    proof = Proof((), {}, (), 0.0, tuple(unfounded(system)))
    monkeypatch.setattr("mmcache_spec.cli.jobs.proof_of", lambda *_: proof)
    said = CliRunner().invoke(cli, ["prove"])
    assert said.exit_code == 3
    assert (
        "? taken for granted: ledger: size(x) may be negative, for all that the axioms say\n"
        in said.output
    )
    assert "UNKNOWN: nothing is claimed" in said.output
    data = json.loads(CliRunner().invoke(cli, ["prove", "--json"]).stdout)
    assert data["verdict"] == "unknown"
    assert data["vacuity"]["unfounded"] == [
        "ledger: size(x) may be negative, for all that the axioms say"
    ]


# --- the rules ---------------------------------------------------------------------------------

FINITE = [
    setof(HASH, lambda h: cached.has(h)),
    setof(HASH, lambda h: cached.has(h) & ~freed.has(h)),
    setof(HASH, lambda h: cached.has(h) | freed.has(h)),
    setof(HASH, lambda h: ~(~cached.has(h) | freed.has(h))),
    setof(HASH, lambda h: ~cached.has(h).implies(freed.has(h))),
    setof(HASH, lambda h: any_of()),
    setof(HASH, lambda h: h == some_hash),
    setof(HASH, lambda h: exists(INPUT, lambda j: held.has(j) & (hash_of(j) == h))),
    setof(HASH, lambda h: exists(REQUEST, lambda q: references.has(h, q))),
    setof(HASH, lambda h: ~forall(REQUEST, lambda q: ~references.has(h, q))),
    setof(HASH, REQUEST, lambda h, q: references.has(h, q) & ~(q == some_request)),
    setof(HASH, REQUEST, lambda h, q: cached.has(h) & running.has(q)),
    setof(HASH, REQUEST, lambda h, q: holds_up[q].has(h) & running.has(q)),
    setof(INPUT, lambda j: owner(j) == some_request),
    setof(INPUT, lambda j: running.has(owner(j))),
    setof(HASH, lambda h: exists(INPUT, lambda j: (hash_of(j) == h) & running.has(owner(j)))),
    setof(HASH, lambda h: ite(freed.has(some_hash), cached.has(h), h == some_hash)),
    setof(HASH, lambda h: (cached.has(h) & freed.has(h)) | (freed.has(h) & ~cached.has(h))),
    setof(INT, lambda k: (k >= 0) & (k < n)),
    setof(INT, lambda k: all_of(~(k < 0), k <= n)),
    setof(INT, HASH, lambda k, h: all_of(k <= size(h), cached.has(h), k >= 0)),
    setof(BOOL, lambda b: b | ~b),
    cached.union(freed).insert(some_hash).minus(freed).remove(some_hash),
    cached.minus(setof(HASH, lambda h: ~freed.has(h))),
    holds_up[some_request],
    holds_up.put(some_request, cached),
    mapof(REQUEST, lambda q: holds_up[q].union(cached)),
]

NOT_FINITE = [
    setof(HASH, lambda h: TRUE),
    setof(HASH, lambda h: ~cached.has(h)),
    setof(HASH, lambda h: cached.has(h) | ~freed.has(h)),
    setof(HASH, lambda h: cached.has(h).implies(freed.has(h))),
    setof(HASH, lambda h: cached.has(h).iff(freed.has(h))),
    setof(HASH, lambda h: ite(cached.has(h), freed.has(h), ~freed.has(h))),
    setof(HASH, REQUEST, lambda h, q: cached.has(h)),
    setof(HASH, REQUEST, lambda h, q: cached.has(h) | running.has(q)),
    setof(HASH, REQUEST, lambda h, q: holds_up[q].has(h)),
    setof(HASH, lambda h: exists(REQUEST, lambda q: holds_up[q].has(h))),
    setof(HASH, lambda h: exists(INPUT, lambda j: hash_of(j) == h)),
    setof(HASH, lambda h: exists(HASH, lambda g: (g == h) & ~cached.has(g))),
    setof(INPUT, lambda j: hash_of(j) == some_hash),
    setof(INPUT, lambda j: cached.has(hash_of(j))),
    setof(INPUT, lambda j: position(j) < n),
    setof(INT, lambda k: k < n),
    setof(INT, lambda k: (k < n) & (k < n + 1)),
    setof(INT, lambda k: (k >= 0) & exists(INT, lambda m: k < m)),
    setof(HASH, lambda h: since[h] < n),
    cached.union(setof(HASH, lambda h: ~freed.has(h))),
    setof(HASH, lambda h: ~cached.has(h)).minus(cached),
    mapof(REQUEST, lambda q: setof(HASH, lambda h: ~holds_up[q].has(h))),
]


@pytest.mark.parametrize("members", FINITE, ids=formula)
def test_it_is_finite(members: Term) -> None:
    assert is_finite(members, (owner,))


@pytest.mark.parametrize("members", NOT_FINITE, ids=formula)
def test_it_is_not_shown_finite(members: Term) -> None:
    assert not is_finite(members, (owner,))


def test_sets_in_maps_of_maps_are_sets() -> None:
    deep = state("deep", MapSort.of(HASH, MapSort.of(REQUEST, SetSort.of(INPUT))))
    assert holds_sets(deep)
    assert not holds_sets(since)
    assert is_finite(
        deep.put(some_hash, mapof(REQUEST, lambda q: setof(INPUT, lambda j: held.has(j))))
    )
    everything = mapof(REQUEST, lambda q: setof(INPUT, lambda j: ~held.has(j)))
    assert not is_finite(deep.put(some_hash, everything))


def test_without_positions_the_inputs_of_a_request_may_be_infinitely_many() -> None:
    mine = setof(INPUT, lambda j: owner(j) == some_request)
    assert not is_finite(mine)


def test_the_greatest_of_infinitely_many_is_told() -> None:
    wrong = largest(INPUT, lambda j: hash_of(j) == some_hash, position)
    (told,) = not_shown_finite(forall(HASH, lambda h: wrong >= size(h)), (owner,))
    assert formula(told) == "{ j | hash_of(j) = some_hash }"
    right = largest(INPUT, lambda j: held.has(j) & (hash_of(j) == some_hash), position)
    assert list(not_shown_finite(right)) == []


def test_what_largest_is_taken_for_is_what_is_proved() -> None:
    """The solver is told, in its words, the theorem `largest_is_attained` of Finiteness.v."""
    asserted, told = Unbounded().assertions([largest(INPUT, lambda j: held.has(j), position) == n])
    inputs, sets = z3.DeclareSort("Input"), z3.DeclareSort("Set_Input")
    member = z3.Function("in_Input", sets, inputs, z3.BoolSort())
    value = z3.Function("position", inputs, z3.IntSort())
    x, some = z3.Const("x", inputs), z3.Const("held", sets)
    (greatest,) = (c for c in asserted.children() if c.decl().name().startswith("largest"))
    exist = z3.Exists(x, member(some, x))
    attained = z3.Exists(x, z3.And(member(some, x), value(x) == greatest))
    bound = z3.ForAll(x, z3.Implies(member(some, x), value(x) <= greatest))
    proved = z3.And(
        z3.Implies(exist, z3.And(attained, bound)), z3.Implies(z3.Not(exist), greatest == 0)
    )
    solver = z3.Solver()
    solver.set("rlimit", 2_000_000)
    assert solver.check(told != proved) == z3.unsat
    assert solver.check(told != z3.And(attained, bound)) != z3.unsat


# --- the rules, against a world with elements that nothing speaks of ----------------------------

# Nothing of the state names F or rf, or the inputs of rf. There could be any number like them, so a
# comprehension that has one of them is infinite in a larger world.
WORLD = World(
    universe={
        "Hash": ("A", "B", "F"),
        "Request": ("r1", "r2", "rf"),
        "Input": ("r1/0", "r2/0", "rf/0", "rf/1"),
    },
    constants={"capacity": 2},
    functions={
        "hash_of": {"r1/0": "A", "r2/0": "B", "rf/0": "F", "rf/1": "A"},
        "owner": {"r1/0": "r1", "r2/0": "r2", "rf/0": "rf", "rf/1": "rf"},
        "position": {"r1/0": 0, "r2/0": 0, "rf/0": 0, "rf/1": 1},
        "inputs_of": {"r1": 1, "r2": 1, "rf": 2},
        "size": {"A": 1, "B": 2, "F": 1},
    },
)
FRESH = {"F", "rf", "rf/0", "rf/1"}

Bound = dict[Sort, list[Term]]


class Bodies:
    """Formulas at random, about some bound variables."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def body(self, bound: Bound, depth: int) -> Term:
        pick = self.random.choice
        if depth == 0 or self.random.random() < 0.2:
            return self._atom(bound)
        form = pick(["and", "and", "or", "not", "implies", "iff", "ite", "exists", "forall"])
        if form in ("exists", "forall"):
            sort = pick([HASH, REQUEST, INPUT])
            quantifier = exists if form == "exists" else forall

            def inner(v: Term) -> Term:
                return self.body({**bound, sort: [*bound[sort], v, v]}, depth - 1)

            return quantifier(sort, inner)
        one, two, three = (self.body(bound, depth - 1) for _ in range(3))
        forms: dict[str, Callable[[], Term]] = {
            "and": lambda: one & two,
            "or": lambda: one | two,
            "not": lambda: ~one,
            "implies": lambda: one.implies(two),
            "iff": lambda: one.iff(two),
            "ite": lambda: ite(one, two, three),
        }
        return forms[form]()

    def _atom(self, bound: Bound) -> Term:
        pick = self.random.choice
        h, q, j = (pick(bound[s]) for s in (HASH, REQUEST, INPUT))
        atoms: list[Callable[[], Term]] = [
            lambda: cached.has(h),
            lambda: references.has(h, q),
            lambda: references.has(hash_of(j), q),
            lambda: held.has(j),
            lambda: running.has(q),
            lambda: running.has(owner(j)),
            lambda: cached.minus(freed).insert(some_hash).has(h),
            lambda: setof(HASH, lambda x: references.has(x, q) & freed.has(h)).has(h),
            lambda: hash_of(j) == h,
            lambda: owner(j) == q,
            lambda: h == pick(bound[HASH]),
            lambda: q == pick(bound[REQUEST]),
            lambda: since[h] < since[pick(bound[HASH])],
            lambda: position(j) < size(h),
        ]
        return pick(atoms)()

    def comprehension(self) -> Term:
        depth = self.random.choice([1, 2, 2, 3])
        outer: Bound = {HASH: [some_hash], REQUEST: [some_request], INPUT: [some_input]}
        sorts = self.random.choice([(HASH,), (INPUT,), (REQUEST,), (HASH, REQUEST)])

        def of(*variables: Term) -> Term:
            mine = {s: [v for v in variables if v.sort == s] for s in outer}
            return self.body({s: [*outer[s], *mine[s] * 3] for s in outer}, depth)

        if len(sorts) == 2:
            return setof(*sorts, lambda x, y: of(x, y))
        return setof(*sorts, lambda x: of(x))

    def old_state(self) -> dict[str, object]:
        """Any state, but one that names nothing fresh."""

        def some(*elements: str) -> frozenset[tuple[str, ...]]:
            return frozenset((e,) for e in elements if self.random.random() < 0.6)

        pairs = [("A", "r1"), ("A", "r2"), ("B", "r1"), ("B", "r2")]
        return {
            "cached": some("A", "B"),
            "freed": some("A", "B"),
            "held": some("r1/0", "r2/0"),
            "running": some("r1", "r2"),
            "references": frozenset(p for p in pairs if self.random.random() < 0.5),
            "since": {h: self.random.randrange(3) for h in ("A", "B", "F")},
            "some_hash": self.random.choice("AB"),
            "some_request": self.random.choice(["r1", "r2"]),
            "some_input": self.random.choice(["r1/0", "r2/0"]),
        }


def _trial(seeds: range) -> Iterator[tuple[bool, bool]]:
    """Of each comprehension: is it said to be finite, and is it infinite in larger worlds?"""
    run = Interpreter(SPECIFIED.systems[0], WORLD)
    for seed in seeds:
        bodies = Bodies(seed)
        members = bodies.comprehension()
        values = [run.evaluate(members, bodies.old_state()) for _ in range(4)]
        infinite = any(FRESH.intersection(element) for value in values for element in value)
        yield is_finite(members, (owner,)), infinite


def test_what_is_said_to_be_finite_never_reaches_a_fresh_element() -> None:
    found = list(_trial(range(1_500)))
    assert (True, True) not in found
    assert found.count((True, False)) > 100
    assert found.count((False, True)) > 200


def _ignores_negation(term: Term) -> Term:
    return term


def _any_function_will_do(self: object, term: Term) -> Symbol | None:
    while isinstance(term, Op) and term.name == "apply":
        term = term.args[0]
    return term if isinstance(term, Symbol) else None


def _knows_everything(self: object, *about: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (finiteness, "_negated", _ignores_negation),
        (finiteness._Bounds, "_argument", _any_function_will_do),
        (finiteness._Bounds, "_known", _knows_everything),
    ],
)
def test_a_wrong_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, wrong: Callable[..., object]
) -> None:
    monkeypatch.setattr(where, name, wrong)
    assert (True, True) in _trial(range(1_500))
