"""`exhaust` is complete within its scope, and finds what is wrong by the shortest way."""

from __future__ import annotations

import json

import msgspec
import pytest
from click.testing import CliRunner

from mmcache import EncoderCacheManager
from mmcache_conformance.cli import cli
from mmcache_conformance.exhaust.search import exhaust
from mmcache_conformance.exhaust.world import Scope, alphabet, parameters_of_scope
from mmcache_conformance.oracle.systems import specified
from mmcache_spec.evaluate.interpreter import Interpreter
from mmcache_spec.oracle import observe, spec_calls, world_of
from tests.known_bad.managers import ENCODER_DECODERS, LEDGERS

SMALL = Scope(hashes=2, requests=2, inputs=2, capacity=3)
SMALL_ENCODER_DECODER = Scope("encoder_decoder", hashes=2, requests=2, inputs=2, capacity=3)
SCOPES = pytest.mark.parametrize("scope", [SMALL, SMALL_ENCODER_DECODER], ids=lambda s: s.manager)


def search(target, scope, processes=1, max_states=10**6):
    return exhaust(target, scope, processes=processes, max_states=max_states)


def states_by_the_interpreter(scope):
    """The count, by brute force, with nothing of `exhaust` but its alphabet."""
    parameters = parameters_of_scope(scope)
    system, world = specified(scope.manager), world_of(parameters)
    interpreter = Interpreter(system, world)
    calls = [c for call in alphabet(parameters) for c in spec_calls(system, call)]
    hidden = {"since", "clock"}
    ghosts = {v.name for v in system.variables if v.role == "ghost"}

    def shown(state):
        kept = tuple((n, v) for n, v in sorted(state.items()) if n not in hidden | ghosts)
        return kept, observe(system, world, state).freeable

    start = interpreter.initial()
    seen, waiting = {shown(start)}, [start]
    while waiting:
        state = waiting.pop()
        for call in calls:
            after = interpreter.call(state, call).after
            if shown(after) not in seen:
                seen.add(shown(after))
                waiting.append(after)
    return len(seen)


@SCOPES
@pytest.mark.parametrize("processes", [1, 2])
def test_a_right_manager_is_right_in_every_state(scope, processes):
    found = search("reference", scope, processes)
    assert found.disagreement is None
    assert not found.bounded
    assert not found.opaque
    assert found.left_out == ()
    assert found.spec_states == found.spec_states_expected <= found.pairs


@SCOPES
def test_the_count_of_states_is_that_of_the_interpreter(scope):
    assert search("reference", scope).spec_states_expected == states_by_the_interpreter(scope)


@pytest.mark.parametrize("cls", [*LEDGERS, *ENCODER_DECODERS], ids=lambda c: c.__name__)
def test_a_defect_of_history_is_found(cls):
    encoder_decoder = cls in ENCODER_DECODERS
    scope = Scope(
        "encoder_decoder" if encoder_decoder else "encoder_cache",
        hashes=2, requests=2, inputs=3, capacity=2, sizes=(1, 2),
    )  # fmt: skip
    target = f"{',' if encoder_decoder else ''}{cls.__module__}:{cls.__name__}"
    one, two = search(target, scope), search(target, scope, processes=2)
    assert one.disagreement is not None
    assert two.disagreement is not None
    assert len(one.disagreement.calls) == len(two.disagreement.calls) <= 6


def test_the_unfiltered_report_needs_five_calls():
    """As the bounded model checker says of the variant, and the clause is named."""
    found = search("tests.known_bad.managers:UnfilteredReport", SMALL)
    wrong = found.disagreement
    assert wrong is not None
    assert len(wrong.calls) == 5
    assert wrong.clauses == ("L1",)
    assert [d.what for d in wrong.differences] == ["returns"]


# --- objects of other kinds --------------------------------------------------------------------


class Box:
    """Neither a number nor a container."""

    def __init__(self, value):
        self.value = value


class KeepsABox(EncoderCacheManager):
    def __init__(self, cache_size):
        super().__init__(cache_size)
        self.box = Box({})


class Raises(EncoderCacheManager):
    def free(self, request):
        raise LookupError("nobody\nhome")


class ComesAndGoes(EncoderCacheManager):
    def free(self, request):
        super().free(request)
        self.freed_once = True


class GrowsAContainer(EncoderCacheManager):
    """An attribute that was a number becomes a container; two states must not share it."""

    def __init__(self, cache_size):
        super().__init__(cache_size)
        self.log = None

    def allocate(self, request, input_id):
        super().allocate(request, input_id)
        self.log = self.log or {}
        self.log.setdefault("allocated", []).append(input_id)


def test_an_object_with_other_things_in_it_is_copied_the_slow_way():
    found = search(f"{__name__}:KeepsABox", SMALL, processes=2)
    assert found.opaque
    assert found.disagreement is None
    assert found.spec_states == found.spec_states_expected == found.pairs


def test_a_state_that_changes_its_shape_is_followed():
    found = search(f"{__name__}:GrowsAContainer", SMALL)
    assert found.disagreement is None
    assert not found.opaque
    assert found.pairs > found.spec_states == found.spec_states_expected


def test_an_exception_is_a_difference():
    wrong = search(f"{__name__}:Raises", SMALL).disagreement
    assert wrong is not None
    assert len(wrong.calls) == 1
    assert wrong.differences[0].what == "error"
    assert "LookupError: nobody home" in str(wrong.differences[0].got)


# --- the command -------------------------------------------------------------------------------

ARGUMENTS = ["--hashes", "2", "--inputs", "2", "--capacity", "3", "--processes", "1"]


def run(*arguments):
    return CliRunner().invoke(cli, ["exhaust", *arguments])


def test_the_command_says_that_it_is_complete():
    done = run("reference", *ARGUMENTS)
    assert done.exit_code == 0
    assert "complete: all" in done.output


def test_the_command_tells_the_shortest_way_to_a_difference():
    done = run("tests.known_bad.managers:UnfilteredReport", *ARGUMENTS)
    assert done.exit_code == 1
    assert "  5  get_freed_mm_hashes()\n" in done.output
    assert "L1 report_disjoint_from_cached" in done.output


def test_json():
    done = run("reference", *ARGUMENTS, "--json")
    assert done.exit_code == 0
    found = json.loads(done.output)
    assert found["spec_states"] == found["spec_states_expected"]
    assert msgspec.convert(found["scope"], Scope) == SMALL


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["reference", "--max-states", "10"], 3, "given up"),
        (["reference", "--sizes", "1"], 2, "give 2 sizes"),
        (["reference", "--sizes", "x,y"], 2, "give 2 sizes"),
        (["no such target"], 2, "does not name a target"),
        (["nowhere:Class"], 3, "could not be exhausted"),
        ([f"{__name__}:Box"], 3, "could not be exhausted"),
        ([f"{__name__}:ComesAndGoes"], 3, "freed_once"),
        ([f"{__name__}:KeepsABox,", "--encoder-decoder"], 3, "no encoder_decoder manager"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_said(arguments, code, says):
    done = run(*arguments, *ARGUMENTS)
    assert (done.exit_code, "Traceback" in done.output) == (code, False)
    assert says in done.output
