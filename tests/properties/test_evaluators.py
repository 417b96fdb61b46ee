"""Every reader of the term language says the same of the same term in the same state.

Random terms put every operator to the test, and every definition of every model is evaluated in
random states, also in those that no path reaches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from mmcache_spec.evaluate import unbounded
from mmcache_spec.evaluate.compiled import CompiledSystem
from mmcache_spec.evaluate.cvc5_terms import cvc5_decides
from mmcache_spec.evaluate.finite import Finite
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter
from mmcache_spec.evaluate.uniform import UniformSystem
from mmcache_spec.kernel.system import Action, Scope, TransitionSystem
from mmcache_spec.kernel.terms import BOOL, INT, TRUE, MapSort, SetSort, Term
from mmcache_spec.model.decisions import DECISIONS, system_of
from mmcache_spec.model.variants import SPECIFIED, VARIANTS
from mmcache_spec.model.world import scope
from tests.support.evaluators import (
    Situation,
    by_finite,
    by_unbounded,
    facts,
    random_situation,
    random_value,
)
from tests.support.quick import only_quick
from tests.support.random_systems import HASH, PLACES, RandomTerms, random_system, small_scope

SORTS = (BOOL, INT, SetSort.of(HASH), MapSort.of(HASH, INT))
SEEDS = range(120)
RIGHT = {system.name: system for system in SPECIFIED.systems}
VARIED = [pytest.param(name, marks=pytest.mark.slow) for name in VARIANTS if name != "specified"]
"""The variants differ from what is specified in a few lines: they are for CI."""
EACH = [*RIGHT, *VARIED]
QUICK_FIRST = [
    pytest.param(name, marks=pytest.mark.slow) if name in ("engine", "progress") else name
    for name in EACH
]
"""All; the two with most definitions are of CI."""
MANAGERS = [pytest.param(name, marks=pytest.mark.slow) for name in DECISIONS]


def _system(name: str) -> TransitionSystem:
    return RIGHT[name] if name in RIGHT else VARIANTS[name].system


def _drawn(seed: int) -> tuple[Term, TransitionSystem, Situation]:
    """A random term, of a random sort, in a random situation."""
    chance = random.Random(seed)
    system = random_system(0)
    at = random_situation(chance, system, small_scope(chance.choice((1, 2, 3)), 2))
    terms = RandomTerms(chance, (*PLACES, *system.constants))
    return terms.term(SORTS[seed % len(SORTS)], 3), system, at


def _asking(term: Term, system: TransitionSystem) -> tuple[TransitionSystem, str]:
    """A system with a call whose effect on a variable of that sort is the term."""
    variable = next(v for v in PLACES if v.sort == term.sort)
    asking = Action("ask", effect=(variable.becomes(term),), returns=TRUE)
    fresh = TransitionSystem(
        "asking",
        PLACES,
        system.constants,
        system.functions,
        (),
        system.init,
        (asking,),
        (),
        (),
        TRUE,
    )
    return fresh, variable.name


def _by_compiled(term: Term, system: TransitionSystem, at: Situation) -> object:
    fresh, name = _asking(term, system)
    compiled = CompiledSystem(fresh, at.world)
    done = compiled.compile(ActionCall("ask"))(compiled.pack(at.before))
    assert done is not None
    value = compiled.unpack(done[1])[name]
    return bool(value) if term.sort == BOOL else value


def _by_uniform(term: Term, system: TransitionSystem, at: Situation) -> object:
    fresh, name = _asking(term, system)
    world = UniformSystem(fresh).world(at.world)
    done = world.calls["ask"](world.pack(at.before))
    assert done is not None
    value = world.unpack(done[1])[name]
    return bool(value) if term.sort == BOOL else value


@pytest.mark.parametrize("seed", SEEDS)
def test_random_terms_have_one_value(seed: int) -> None:
    term, system, at = _drawn(seed)
    said = Interpreter(system, at.world).evaluate(term, at.before)
    assert by_finite(term, system, at) == said
    assert _by_compiled(term, system, at) == said
    assert _by_uniform(term, system, at) == said


@pytest.mark.parametrize("name", ["ledger", "encoder_decoder", *MANAGERS])
def test_one_code_of_a_manager_is_right_in_all_worlds(name: str) -> None:
    """Every call in random states of worlds of many shapes, with guards and answers."""
    system = RIGHT[name] if name in RIGHT else system_of([name])
    chance = random.Random(f"uniform {name}")
    uniform = UniformSystem(system)
    kept_up = {v.name for v in uniform.variables}
    refused = made = 0
    for _ in range(40):
        requests = tuple(chance.randrange(4) for _ in range(chance.randrange(1, 4)))
        at = random_situation(chance, system, _universe(chance.randrange(1, 5), requests))
        world = uniform.world(at.world)
        for action in system.actions:
            if any(not at.world.universe.get(p.sort.name, "any") for p in action.parameters):
                continue
            given = {p.name: random_value(chance, p.sort, at.world) for p in action.parameters}
            step = Interpreter(system, at.world).call(at.before, ActionCall(action.name, given))
            numbers = [
                given[p.name] if p.sort == INT else world.number(p.sort, given[p.name])
                for p in action.parameters
            ]
            done = world.calls[action.name](world.pack(at.before), *numbers)
            assert (done is None) == bool(step.refused_by), action.name
            if done is None:
                refused += 1
                continue
            made += 1
            answer, after = done
            sort = None if action.returns is None else action.returns.sort
            assert step.result == (
                world.members(sort, answer) if isinstance(sort, SetSort) else answer
            )
            assert world.unpack(after) == {k: v for k, v in step.after.items() if k in kept_up}
        start = Interpreter(system, at.world).initial()
        assert world.initial() == world.pack(start)
    assert refused > 20
    assert made > 100


def _universe(hashes: int, requests: tuple[int, ...]) -> Scope:
    """Requests with different numbers of inputs."""
    inputs = {f"r{q}/{k}": (f"r{q}", k) for q, n in enumerate(requests) for k in range(n)}
    return Scope(
        "any",
        {
            "Hash": tuple(f"h{k}" for k in range(hashes)),
            "Request": tuple(f"r{q}" for q in range(len(requests))),
            "Input": tuple(inputs),
        },
        fixed={
            "owner": {i: r for i, (r, _) in inputs.items()},
            "position": {i: k for i, (_, k) in inputs.items()},
        },
    )


def test_random_formulas_follow_where_they_are_true() -> None:
    """The translation of the proofs, in a world of a known number of elements."""
    decided = 0
    formulas = [seed for seed in SEEDS if SORTS[seed % len(SORTS)] == BOOL]
    for seed in formulas:
        term, system, at = _drawn(seed)
        said = Interpreter(system, at.world).evaluate(term, at.before)
        answer = by_unbounded(term, system, at)
        assert answer in (None, bool(said)), seed
        decided += answer is not None
    assert decided > 0.9 * len(formulas)


def test_random_formulas_follow_for_cvc5_too() -> None:
    """The translation for the second solver, which shares nothing with the first."""
    decided = 0
    formulas = [seed for seed in SEEDS if SORTS[seed % len(SORTS)] == BOOL]
    for seed in formulas:
        term, system, at = _drawn(seed)
        said = bool(Interpreter(system, at.world).evaluate(term, at.before))
        given = facts(system, at, term)
        true = cvc5_decides([*given, term], 2_000)
        false = cvc5_decides([*given, ~term], 2_000)
        assert (false if not said else true) != "unsat", seed
        decided += (true if not said else false) == "unsat"
    assert decided > 0.9 * len(formulas)


def _calls(system: TransitionSystem, at: Situation, chance: random.Random) -> Iterator[ActionCall]:
    for action in system.actions:
        given = {p.name: random_value(chance, p.sort, at.world) for p in action.parameters}
        yield ActionCall(action.name, given)


@pytest.mark.parametrize("name", QUICK_FIRST)
def test_every_definition_means_the_same_to_all(name: str) -> None:
    """Each guard, answer and update of each action, and each claim, in random states."""
    system = _system(name)
    chance = random.Random(name)
    for _ in range(3):
        at = random_situation(chance, system, scope(2, 2, 1))
        interpreter = Interpreter(system, at.world)
        for call in _calls(system, at, chance):
            action = system.action(call.action)
            before = Situation(at.world, at.before, arguments=call.arguments)
            free = Interpreter(_unguarded(system), at.world).call(at.before, call)
            refused = interpreter.call(at.before, call).refused_by
            said = {g for g, t in action.guard.items() if not by_finite(t, system, before)}
            assert set(refused) == said
            if action.returns is not None:
                assert by_finite(action.returns, system, before) == free.result
            told = Situation(at.world, at.before, arguments=call.arguments, result=free.result)
            for variable, term in action.effect:
                assert by_finite(term, system, told) == free.after[variable.name]
            whole = Situation(at.world, at.before, free.after, call.arguments, free.result)
            broken = {
                p.name
                for p in system.action_properties
                if p.action == action.name and not by_finite(p.formula, system, whole)
            }
            claims = {p.name for p in system.action_properties if p.action == action.name}
            assert broken == claims & {p.name for p in interpreter.breaks(free)
                                       if p in system.action_properties}  # fmt: skip
        for invariant in system.invariants:
            holds = interpreter.holds(invariant, at.before)
            assert by_finite(invariant.formula, system, at) == holds


def _unguarded(system: TransitionSystem) -> TransitionSystem:
    from dataclasses import replace

    return replace(system, actions=tuple(replace(a, guard={}) for a in system.actions))


@pytest.mark.parametrize("name", EACH)
def test_compiled_calls_do_what_the_interpreter_does(name: str) -> None:
    system = _system(name)
    chance = random.Random(name)
    made = 0
    for _ in range(4):
        at = random_situation(chance, system, scope(2, 2, 1))
        interpreter = Interpreter(_unguarded(system), at.world)
        compiled = CompiledSystem(_unguarded(system), at.world, with_ghosts=True)
        for call in _calls(system, at, chance):
            done = compiled.compile(call)(compiled.pack(at.before), *_integers(call))
            step = interpreter.call(at.before, call)
            assert done is not None
            assert done[1] == compiled.pack(step.after), call
            made += 1
    assert made >= 4 * len(system.actions)


def _integers(call: ActionCall) -> list[int]:
    return [v for v in call.arguments.values() if isinstance(v, int)]


@pytest.mark.parametrize(
    "system",
    only_quick(
        [(s,) for s in VARIANTS["specified"].systems],
        lambda s: s.name in ("ledger", "encoder_decoder", "progress"),
    ),
    ids=lambda s: s.name,
)
def test_claims_follow_in_the_translation_of_the_proofs(system: TransitionSystem) -> None:
    """Every invariant of the specified design, in a random state each."""
    decided = asked = 0
    at = random_situation(random.Random(system.name), system, scope(2, 2, 1))
    for invariant in system.invariants:
        answer = by_unbounded(invariant.formula, system, at)
        holds = Interpreter(system, at.world).holds(invariant, at.before)
        assert answer in (None, holds), invariant.name
        decided += answer is not None
        asked += 1
    assert decided > 0.9 * asked


# --- mistakes of one translation are noticed -----------------------------------------------------


def test_a_finite_translation_with_a_wrong_operator_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Finite._operator

    def wrong(self: Finite, term, at, bound):  # type: ignore[no-untyped-def]
        if term.name == "minus":
            return self._value(term.args[0], at, bound)
        return whole(self, term, at, bound)

    monkeypatch.setattr(Finite, "_operator", wrong)
    assert any(
        by_finite(term, system, at) != Interpreter(system, at.world).evaluate(term, at.before)
        for term, system, at in map(_drawn, SEEDS)
    )


def test_an_unbounded_translation_with_a_wrong_operator_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(unbounded._OPERATORS, "le", lambda a, b: a < b)
    formulas = [seed for seed in range(400) if SORTS[seed % len(SORTS)] == BOOL]
    assert any(
        by_unbounded(term, system, at)
        not in (None, Interpreter(system, at.world).evaluate(term, at.before))
        for term, system, at in map(_drawn, formulas)
    )
