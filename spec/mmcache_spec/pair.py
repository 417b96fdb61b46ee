"""A pair of processor caches made of the specification: requests in, specified answers out.

The model speaks of items, vectors speak of requests: this is the step between the two. A request is
taken as a whole at P0, and handled as a whole at P1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from mmcache_vectors.pair import (
    ClearReceiver,
    ClearSender,
    Deliver,
    Invalidate,
    PairCall,
    PairExpect,
    PairParameters,
    PairRequest,
    ProcessRequest,
    Withdraw,
    origin,
)

from .evaluate.compiled import CompiledCall, CompiledClaims, CompiledSystem, Packed
from .evaluate.interpreter import ActionCall, Interpreter, World
from .evaluate.uniform import UniformSystem
from .kernel.system import TransitionSystem
from .model.processor_cache import ProcessorCacheDesign, processor_cache

__all__ = ["PairAnswer", "PairSystem", "PairView", "taken_in_order"]

SPECIFIED = ProcessorCacheDesign()


_OFTEN = 20
"""A call that is made as often is worth being compiled, which takes as long as to interpret it
some ten times. A vector makes each once or twice, a search a thousand times."""

_RECORD = ("withheld", "affirmed", "recorded", "forgotten", "missed", "overtaken", "renewed")
"""What the clauses speak of besides."""


@dataclass(frozen=True)
class PairView:
    """What the two sides hold, the longest unused first."""

    sender: tuple[str, ...]
    receiver: tuple[str, ...]
    ordered: frozenset[str]
    """The keys in the receiver's order of use."""


@dataclass(frozen=True)
class PairAnswer:
    """What a call was answered, as a harness sees it."""

    expect: PairExpect = field(default_factory=PairExpect)
    missed: tuple[str, ...] = ()
    """The hashes that P1 was asked for without data and did not have."""
    raised: bool = False
    """P0 raised in the middle of the request, which is not sent."""
    died: bool = False
    """P1 ended, and with it everything that is in flight."""
    broke: frozenset[str] = field(default=frozenset(), compare=False)
    """The clauses of the model that the call has broken, where that is asked."""


@dataclass(frozen=True)
class State:
    """Between two calls: the state of the model, and the requests that are on their way."""

    packed: Packed
    line: tuple[tuple[str, bool], ...] = ()
    """In the order in which they arrive; whether each was withdrawn and travels all the same."""
    dead: bool = False


def taken_in_order(request: PairRequest, walk: str) -> tuple[int, ...]:
    """The positions of the items, in the order in which P0 takes them."""
    places = range(len(request.items))
    if walk == "prompt_order":
        return tuple(places)
    modalities = list(dict.fromkeys(item.modality for item in request.items))
    return tuple(sorted(places, key=lambda p: modalities.index(request.items[p].modality)))


class PairSystem:
    """The protocol under a design, in the world of a vector.

    Args:
        parameters: The world.
        design: The decisions; without it, the right ones.
        judged: Whether the clauses of the model are evaluated at every step, for
            `PairAnswer.broke`. Without that, the code answers that is written once for all worlds;
            with it, an interpreter, and what is compiled for this world.
    """

    def __init__(
        self,
        parameters: PairParameters,
        design: ProcessorCacheDesign = SPECIFIED,
        *,
        judged: bool = False,
    ) -> None:
        self.parameters = parameters
        self.design = design
        self._requests = {r.request_id: r for r in parameters.requests}
        self._system: TransitionSystem = _system(design)
        world = world_of(parameters)
        self._judged = judged
        if judged:
            self._compiled = CompiledSystem(self._system, world, with_ghosts=True)
            self._interpreter = Interpreter(self._system, world)
        else:
            self._quick = _uniform(design).world(world)
        self._made: Counter[tuple[str, ...]] = Counter()
        self._calls: dict[tuple[str, ...], CompiledCall] = {}
        self._known: dict[Packed, Mapping[str, Any]] = {}
        self._claims: dict[tuple[str, ...], list[CompiledClaims]] = {}
        stated = [i for i in self._system.invariants if i.clause and judged]
        self._stated = [
            (str(i.clause), self._compiled.compile_claims([i.formula], {})) for i in stated
        ]
        self._broken: set[str] = set()

    # --- what can be asked ---------------------------------------------------------------------

    def initial(self) -> State:
        return State(self._compiled.initial() if self._judged else self._quick.initial())

    def call(self, state: State, call: PairCall) -> tuple[PairAnswer, State] | None:
        """What is answered, and the state after it; None where the call cannot come."""
        if state.dead:
            return PairAnswer(died=True), state
        self._broken.clear()
        answered = self._answered(state, call)
        if answered is None:
            return None
        answer, after = answered
        for clause, false in self._stated:  # within a request nobody sees the state
            if false(after.packed, after.packed, None) >= 0:
                self._broken.add(clause)
        return replace(answer, broke=frozenset(self._broken)), after

    def _answered(self, state: State, call: PairCall) -> tuple[PairAnswer, State] | None:
        match call:
            case ProcessRequest(request):
                return self._process(state, request)
            case Deliver(request):
                return self._deliver(state, request)
            case Withdraw(request):
                return self._withdraw(state, request)
            case Invalidate(identifier):
                return self._plain(state, "invalidate", hash=identifier)
            case ClearSender():
                return self._plain(state, "clear_sender")
            case ClearReceiver():
                return self._plain(state, "clear_receiver")

    def answers(self, calls: Sequence[PairCall]) -> list[PairAnswer] | None:
        """All answers from the beginning, up to the first call at which the pair ends.

        None where a call cannot come.
        """
        state = self.initial()
        found: list[PairAnswer] = []
        for call in calls:
            answered = self.call(state, call)
            if answered is None:
                return None
            answer, state = answered
            found.append(answer)
            if answer.raised or answer.died or answer.missed:
                break
        return found

    def view(self, state: State) -> PairView:
        """What the two sides hold."""
        values = self._values(state.packed)

        def by_use(side: str) -> tuple[str, ...]:
            return tuple(sorted((h for (h,) in values[side]), key=values[f"{side}_used"].get))

        ordered = frozenset(h for (h,) in values["ordered"])
        return PairView(by_use("sender"), by_use("receiver"), ordered)

    def key(self, state: State) -> Any:
        """Equal for two states between which no later answer can tell."""
        values = self._values(state.packed)
        view = self.view(state)
        flying = values["in_flight"]
        return (
            view,
            state.line,
            state.dead,
            frozenset((h, j) for h, j in values["data_of"] if h in view.receiver),
            flying,
            values["bare"] & flying,
            values["owed"],
            frozenset((j, h) for j, h in values["told"] if (j,) in flying),
            *(values[name] for name in _RECORD if self._judged),
        )

    # --- calls ---------------------------------------------------------------------------------

    def _process(self, state: State, request: str) -> tuple[PairAnswer, State] | None:
        begun = self._do(state.packed, "begin", request=request)
        if begun is None:
            return None
        packed = begun[1]
        sent: dict[int, bool] = {}
        for place in taken_in_order(self._requests[request], self.design.walk):
            taken = self._do(packed, "take", input=origin(request, place))
            if taken is None:  # it raised at an item before: nothing is left to take
                return PairAnswer(raised=True), State(packed, state.line)
            hit, packed = taken
            sent[place] = not hit
        if not self._has(packed, "in_flight", request) and sent:
            return PairAnswer(raised=True), State(packed, state.line)
        told = PairExpect(sent=tuple(sent[place] for place in sorted(sent)))
        return PairAnswer(told), State(packed, (*state.line, (request, False)))

    def _withdraw(self, state: State, request: str) -> tuple[PairAnswer, State] | None:
        if (request, False) not in state.line:
            return None
        done = self._do(state.packed, "withdraw", request=request)
        if done is None:
            return None
        packed = done[1]
        line = tuple(x for x in state.line if x[0] != request)
        if self._has(packed, "in_flight", request):
            line = tuple((r, w or r == request) for r, w in state.line)
        return PairAnswer(), State(packed, line)

    def _deliver(self, state: State, request: str) -> tuple[PairAnswer, State] | None:
        line = list(state.line)
        packed = state.packed
        while line:
            (first, withdrawn), *line = line
            if not withdrawn and first != request:
                return None
            answer, packed = self._handled(packed, first)
            if answer.died or first == request:
                return answer, State(packed, tuple(line), dead=answer.died)
        return None

    def _handled(self, packed: Packed, request: str) -> tuple[PairAnswer, Packed]:
        """P1 handles all items of the request, as far as it gets."""
        data: list[str] = []
        missed: list[str] = []
        for place, item in enumerate(self._requests[request].items):
            name = origin(request, place)
            bare = (name,) in self._values(packed)["bare"]
            done = self._do(packed, "deliver", input=name)
            assert done is not None, f"{name} cannot be handled"
            packed = done[1]
            held = [j for h, j in self._values(packed)["data_of"] if h == item.identifier]
            there = (item.identifier,) in self._values(packed)["receiver"]
            if bare and not there:
                missed.append(item.identifier)
            elif bare or (there and name not in held):
                data += held
            else:
                data.append(name)
            if missed and self.design.fault == "ends_the_engine":
                return PairAnswer(missed=tuple(missed), died=True), packed
        if missed:
            return PairAnswer(missed=tuple(dict.fromkeys(missed))), packed
        return PairAnswer(PairExpect(data=tuple(data))), packed

    def _plain(self, state: State, action: str, **arguments: str) -> tuple[PairAnswer, State]:
        done = self._do(state.packed, action, **arguments)
        assert done is not None, f"{action} cannot come here"
        return PairAnswer(), State(done[1], state.line)

    # --- the model -----------------------------------------------------------------------------

    def _do(self, packed: Packed, action: str, **arguments: str) -> tuple[Any, Packed] | None:
        if not self._judged:
            (parameters,) = (a.parameters for a in self._system.actions if a.name == action)
            numbers = (self._quick.number(p.sort, arguments[p.name]) for p in parameters)
            return self._quick.calls[action](packed, *numbers)
        name = (action, *arguments.values())
        self._made[name] += 1
        if self._made[name] < _OFTEN:
            done = self._interpreted(packed, ActionCall(action, arguments))
        else:
            if name not in self._calls:
                self._calls[name] = self._compiled.compile(ActionCall(action, arguments))
            done = self._calls[name](packed)
        if done is not None:
            self._judge(name, arguments, packed, done)
        return done

    def _interpreted(self, packed: Packed, call: ActionCall) -> tuple[Any, Packed] | None:
        step = self._interpreter.call(self._values(packed), call)
        if step.refused_by:
            return None
        after = self._compiled.pack(step.after)
        self._known[after] = step.after
        return step.result, after

    def _judge(
        self,
        name: tuple[str, ...],
        arguments: Mapping[str, str],
        before: Packed,
        done: tuple[Any, Packed],
    ) -> None:
        """Notes which clauses the step breaks."""
        properties = [p for p in self._system.action_properties if p.action == name[0]]
        if name not in self._claims:
            formulas = [p.formula for p in properties]
            self._claims[name] = [
                self._compiled.compile_claims([formula], arguments) for formula in formulas
            ]
        for p, false in zip(properties, self._claims[name], strict=True):
            if p.clause and false(before, done[1], done[0]) >= 0:
                self._broken.add(p.clause)

    def _values(self, packed: Packed) -> Mapping[str, Any]:
        if packed not in self._known:
            code = self._compiled if self._judged else self._quick
            self._known[packed] = code.unpack(packed)
        return self._known[packed]

    def _has(self, packed: Packed, variable: str, request: str) -> bool:
        places = range(len(self._requests[request].items))
        members = self._values(packed)[variable]
        return any((origin(request, place),) in members for place in places)


@lru_cache(maxsize=32)
def _system(design: ProcessorCacheDesign) -> TransitionSystem:
    return processor_cache(design)


@lru_cache(maxsize=32)
def _uniform(design: ProcessorCacheDesign) -> UniformSystem:
    """Its code, which is written once for all worlds."""
    return UniformSystem(_system(design))


def world_of(parameters: PairParameters) -> World:
    """The world of the model in which these requests are all that there is."""
    places = {
        origin(r.request_id, p): (r, p) for r in parameters.requests for p in range(len(r.items))
    }
    items = {item.identifier: item for r in parameters.requests for item in r.items}
    return World(
        {
            "Hash": tuple(items),
            "Request": tuple(r.request_id for r in parameters.requests),
            "Input": tuple(places),
        },
        {"capacity": parameters.capacity},
        {
            "size": {h: item.size for h, item in items.items()},
            "hash_of": {j: r.items[p].identifier for j, (r, p) in places.items()},
            "owner": {j: r.request_id for j, (r, _) in places.items()},
            "position": {j: p for j, (_, p) in places.items()},
            "inputs_of": {r.request_id: len(r.items) for r in parameters.requests},
        },
    )
