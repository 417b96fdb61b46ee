"""The compiled spec and the interpreter are one thing."""

from __future__ import annotations

import random

import pytest

from mmcache_conformance.exhaust.world import SearchScope, parameters_of_scope
from mmcache_conformance.oracle.systems import specified
from mmcache_spec.evaluate.compiled import CompiledSystem
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, State
from mmcache_spec.kernel.system import Action, Monitor, TransitionSystem
from mmcache_spec.kernel.terms import BOOL, FALSE, INT, SetSort, number, state
from mmcache_spec.oracle import world_of

SCOPES = (
    SearchScope("encoder_cache"),
    SearchScope("encoder_cache", hashes=2, requests=3, inputs=3, capacity=5, sizes=(0, 4)),
    SearchScope("encoder_decoder"),
)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_compiled_calls_agree_with_the_interpreter_on_random_walks(scope: SearchScope) -> None:
    system, world = specified(scope.manager), world_of(parameters_of_scope(scope))
    interpreter, compiled = Interpreter(system, world), CompiledSystem(system, world)
    calls = [c for a in system.actions for c in interpreter.calls(a, range(-1, 8))]
    often = [c for c in calls if c.action in {"allocate", "free_encoder_input"}]
    chance = random.Random(1)
    at: State = interpreter.initial()
    assert compiled.pack(at) == compiled.initial()
    made, functions = 0, {}
    for _ in range(5000):
        call = chance.choice(often if chance.random() < 0.4 else calls)
        step = interpreter.call(at, call)
        integers = [v for v in call.arguments.values() if isinstance(v, int)]
        elements = tuple(v for v in call.arguments.values() if isinstance(v, str))
        key = call.action, elements
        if key not in functions:
            functions[key] = compiled.compile(call)
        done = functions[key](compiled.pack(at), *integers)
        if step.refused_by:
            assert done is None
            continue
        assert done is not None
        result, after = done
        returns = system.action(call.action).returns
        if returns is not None and isinstance(returns.sort, SetSort):
            result = compiled.members(returns.sort, result)
        assert (type(result), result) == (type(step.result), step.result)
        assert after == compiled.pack(step.after)
        unpacked = compiled.unpack(after)
        assert unpacked == {name: step.after[name] for name in unpacked}
        at = step.after
        made += 1
    assert made > 500


def test_a_call_that_reads_a_ghost_is_refused() -> None:
    seen, count = state("seen", BOOL, ghost=True), state("count", INT)
    action = Action("peek", guard={"seen": seen}, effect=(count.becomes(count + 1),))
    haunted = TransitionSystem(
        name="haunted",
        variables=(count,),
        constants=(),
        functions=(),
        axioms=(),
        init=(count.becomes(number(0)),),
        actions=(action,),
        invariants=(),
        action_properties=(),
        pass_start=FALSE,
        monitors=(Monitor(seen, FALSE, {}),),
    )
    with pytest.raises(ValueError, match="reads the ghost seen"):
        CompiledSystem(haunted, world_of(parameters_of_scope(SCOPES[0])))


def test_a_call_can_be_compiled_once_for_all_integers() -> None:
    system = specified("encoder_cache")
    compiled = CompiledSystem(system, world_of(parameters_of_scope(SCOPES[0])))
    ask = compiled.compile(ActionCall("can_allocate", {"input": "r1/0"}))
    assert ask(compiled.initial(), 1, 0) == (True, compiled.initial())
    assert ask(compiled.initial(), 0, 0) == (False, compiled.initial())
    assert ask(compiled.initial(), 0, -1) is None
