"""The encoder part of a scheduler: which requests run in a pass, and what is encoded for them.

One pass is `schedule`, the worker's step, `update`. What is scheduled how is one legal choice
among many; what is proved of the protocol holds for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..encoder_cache import EncoderCacheManager
from .kv_blocks import KvBlocks

__all__ = [
    "EngineItem",
    "EngineParameters",
    "EngineRequest",
    "PassOutput",
    "SchedulingPass",
]

Decision = tuple[str, str, int]
"""An action of the specification, the request, and an input id or a number of tokens (or -1)."""

Place = tuple[str, int]
"""An input: the id of its request, and its index among the items."""


@dataclass(frozen=True)
class EngineItem:
    """A multimodal item: `num_embeds` tokens from `position` on, one embedding each."""

    identifier: str
    position: int
    num_embeds: int

    @property
    def end(self) -> int:
        return self.position + self.num_embeds


@dataclass(frozen=True)
class EngineRequest:
    """A request, as far as a pass looks at it. It is a `Request` for the ledger.

    Attributes:
        mm_features: The items by ascending position, all within the prompt.
        num_prompt_tokens: Text and items together.
        max_tokens: How many tokens are generated before the request finishes.
        priority: The lower, the sooner (policy `priority` only).
        text: Names the text of the prompt: under one name, equal text at equal positions.
    """

    request_id: str
    mm_features: tuple[EngineItem, ...]
    num_prompt_tokens: int
    max_tokens: int = 1
    priority: int = 0
    text: str = ""

    def get_num_encoder_embeds(self, input_id: int) -> int:
        return self.mm_features[input_id].num_embeds

    def token(self, k: int) -> Hashable:
        """What stands for the token at position `k` in a comparison of prefixes."""
        if k >= self.num_prompt_tokens:
            return self.request_id, k
        for item in self.mm_features:
            if item.position <= k < item.end:
                return item.identifier, k - item.position
        return self.text or self.request_id, k


@dataclass(frozen=True)
class EngineParameters:
    """What an operator configures. Sizes are in embeddings, lengths in tokens."""

    cache_size: int
    encoder_budget: int
    """What the encoder may compute in one pass."""
    num_blocks: int
    block_size: int
    chunk_size: int
    """The most tokens of one request in one pass."""
    token_budget: int
    """The most tokens of all requests in one pass."""
    policy: Literal["fcfs", "priority"] = "fcfs"
    prefix_caching: bool = False
    max_running: int = 64
    lookahead: int = 0
    """How many tokens past the scheduled ones a drafter reads."""
    chunked_items: bool = True
    """Whether an item may be computed in several passes."""


@dataclass(frozen=True)
class PassOutput:
    """What one pass tells the worker.

    Attributes:
        num_scheduled_tokens: By request id.
        scheduled_encoder_inputs: The input ids to encode, by the request in whose name.
        gathered_inputs: The input ids that the scheduled tokens overlap, by request id.
        payloads: The inputs whose raw item travels with this output.
        free_encoder_mm_hashes: The report of the ledger: what to drop.
        preempted: The requests that lost their blocks in this pass.
        finished: The requests that ended since the last output; their raw items can go.
        decisions: All that was decided since the last output, in the words of the specification.
    """

    num_scheduled_tokens: dict[str, int]
    scheduled_encoder_inputs: dict[str, tuple[int, ...]]
    gathered_inputs: dict[str, tuple[int, ...]]
    payloads: frozenset[tuple[str, int]]
    free_encoder_mm_hashes: tuple[str, ...]
    preempted: tuple[str, ...]
    finished: tuple[str, ...]
    decisions: tuple[Decision, ...]


@dataclass(eq=False)
class _Live:
    """A request between its arrival and its end."""

    request: EngineRequest
    arrival: int
    computed: int = 0
    generated: int = 0
    covered: int = 0
    """Tokens that a prefix hit covered when it last started to run."""
    known: bool = False
    """The worker has heard of it."""

    @property
    def total(self) -> int:
        return self.request.num_prompt_tokens + self.generated

    @property
    def tokens(self) -> list[Hashable]:
        return [self.request.token(k) for k in range(self.total)]


@dataclass
class _Plan:
    """What a request would do in this pass, if it gets its blocks."""

    tokens: int
    new: list[int] = field(default_factory=list)
    """Inputs that are admitted, and allocated with the blocks."""
    again: list[int] = field(default_factory=list)
    """Further positions of hashes in `new`."""


@dataclass
class _Pass:
    tokens_left: int
    encoder_left: int
    scheduled: dict[str, int] = field(default_factory=dict)
    encodes: dict[str, list[int]] = field(default_factory=dict)
    gathers: dict[str, tuple[int, ...]] = field(default_factory=dict)
    preempted: list[str] = field(default_factory=list)


class SchedulingPass:
    """Schedules requests with multimodal items, pass by pass.

    `withdraw_encoding`, `give_back`, `skip_waiting` and `payloads` are the decisions that the
    specification names, each in a method of its own: a subclass can show what another one breaks.

    Attributes, to be read and not written:
        parameters: The configuration.
        manager: The ledger.
    """

    def __init__(
        self, parameters: EngineParameters, manager: EncoderCacheManager | None = None
    ) -> None:
        self.parameters = parameters
        self.manager = manager or EncoderCacheManager(parameters.cache_size)
        self._blocks = KvBlocks(
            parameters.num_blocks,
            parameters.block_size,
            prefix_caching=parameters.prefix_caching,
        )
        self._live: dict[str, _Live] = {}
        self._running: list[_Live] = []
        self._waiting: list[_Live] = []
        self._arrivals = 0
        self._finished: list[str] = []
        self._log: list[Decision] = []
        self._pass = _Pass(0, 0)

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the requests that hold blocks."""
        return tuple(live.request.request_id for live in self._running)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The ids of the requests that wait, in the order in which they are tried."""
        return tuple(live.request.request_id for live in self._queue())

    def computed(self, request_id: str) -> int:
        """How many tokens of the request are computed; what a pass schedules comes after them."""
        return self._live[request_id].computed

    # --- between passes ------------------------------------------------------------------------

    def add(self, request: EngineRequest) -> None:
        """A request arrives.

        Raises:
            ValueError: A request with this id is here already.
        """
        if request.request_id in self._live:
            raise ValueError(f"request {request.request_id!r} is here already: give it another id")
        live = _Live(request, self._arrivals)
        self._arrivals += 1
        self._live[request.request_id] = live
        self._waiting.append(live)

    def abort(self, request_id: str) -> None:
        """A request ends before its time. One that is not here changes nothing."""
        live = self._live.get(request_id)
        if live is not None:
            self._finish(live)

    def reset(self) -> None:
        """Forget what is cached (L10). The caller empties the worker with it."""
        self.manager.reset()
        self._log.append(("reset", "", -1))

    def update(self, output: PassOutput) -> tuple[str, ...]:
        """The worker has made its step: release what is consumed, end what is complete.

        Returns:
            The ids of the requests that finished.
        """
        finished = []
        for request_id, count in output.num_scheduled_tokens.items():
            live = self._live[request_id]
            live.computed += count
            self._blocks.computed(request_id, live.tokens, live.computed)
            self._consume(live)
            if live.computed == live.total:
                live.generated += 1
                if live.generated >= live.request.max_tokens:
                    self._finish(live)
                    finished.append(request_id)
        return tuple(finished)

    def _consume(self, live: _Live) -> None:
        request = live.request
        for input_id in tuple(self.manager.get_cached_input_ids(request)):
            if request.mm_features[input_id].end <= live.computed:
                self.manager.free_encoder_input(request, input_id)
                self._log.append(("consume", request.request_id, input_id))

    def _finish(self, live: _Live) -> None:
        request_id = live.request.request_id
        self.manager.free(live.request)
        self._blocks.free(request_id)
        del self._live[request_id]
        (self._running if live in self._running else self._waiting).remove(live)
        self._finished.append(request_id)
        self._log.append(("finish", request_id, -1))

    # --- a pass --------------------------------------------------------------------------------

    def schedule(self) -> PassOutput:
        """Decide one pass. Its `update` comes before the next `schedule`."""
        self._pass = _Pass(self.parameters.token_budget, self.parameters.encoder_budget)
        self._schedule_running()
        if not self._pass.preempted:
            self._schedule_waiting()
        return self._dispatch()

    def _schedule_running(self) -> None:
        index = 0
        while index < len(self._running) and self._pass.tokens_left > 0:
            live = self._running[index]
            plan = self._plan(live, live.computed)
            if plan.tokens == 0:
                self._log.append(("defer", live.request.request_id, -1))
                index += 1
                continue
            while not self._blocks.grow(live.request.request_id, live.computed + plan.tokens):
                victim = self._victim()
                index -= self._running.index(victim) < index
                self._preempt(victim)
                if victim is live:
                    break
            else:
                self._commit(live, plan)
                index += 1

    def _schedule_waiting(self) -> None:
        for live in self._queue():
            if self._pass.tokens_left <= 0 or len(self._running) >= self.parameters.max_running:
                break
            tokens = live.tokens
            live.covered = self._blocks.prefix(tokens)
            request_id = live.request.request_id
            if live.covered:
                self._log.append(("prefix_hit", request_id, live.covered))
            plan = self._plan(live, live.covered)
            count = live.covered + plan.tokens
            if plan.tokens and self._blocks.admit(request_id, tokens, count, must_fit=live.total):
                live.computed = live.covered
                self._waiting.remove(live)
                self._running.append(live)
                self._commit(live, plan)
                continue
            if plan.tokens:
                self.give_back(live.request)
                self._log.append(("give_back", request_id, -1))
                break
            self.skip_waiting(live.request)
            self._log.append(("skip_waiting", request_id, -1))

    def _queue(self) -> list[_Live]:
        if self.parameters.policy == "fcfs":
            return list(self._waiting)
        return sorted(self._waiting, key=lambda live: (live.request.priority, live.arrival))

    def _victim(self) -> _Live:
        if self.parameters.policy == "fcfs":
            return self._running[-1]
        return max(self._running, key=lambda live: (live.request.priority, live.arrival))

    def _plan(self, live: _Live, computed: int) -> _Plan:
        """How far the request gets, given what can be hit and what can be admitted."""
        request, budget, pending = live.request, self._pass.encoder_left, 0
        ahead = computed + self.parameters.lookahead
        wanted = (live.total - computed, self.parameters.chunk_size, self._pass.tokens_left)
        plan = _Plan(min(wanted))
        admitted: set[str] = set()
        for i, item in enumerate(request.mm_features):
            if item.end <= computed or item.position >= ahead + plan.tokens:
                continue
            whole = item.position < computed or item.end <= computed + plan.tokens
            if not (whole or self.parameters.chunked_items):
                plan.tokens = max(0, item.position - ahead)
                break
            if item.identifier in admitted:
                plan.again.append(i)
            elif self.manager.check_and_update_cache(request, i):
                self._log.append(("look_up", request.request_id, i))
            elif self.manager.can_allocate(request, i, budget, pending):
                self._log.append(("admit", request.request_id, i))
                budget -= item.num_embeds
                pending += item.num_embeds
                admitted.add(item.identifier)
                plan.new.append(i)
            else:
                plan.tokens = max(0, item.position - ahead)
                break
        return plan

    def _commit(self, live: _Live, plan: _Plan) -> None:
        """The request got its blocks: allocate what was admitted, and schedule it."""
        request, here = live.request, self._pass
        request_id = request.request_id
        for i in plan.new:
            self.manager.allocate(request, i)
            self._log.append(("commit", request_id, i))
            here.encoder_left -= request.get_num_encoder_embeds(i)
            here.encodes.setdefault(request_id, []).append(i)
        for i in plan.again:
            self.manager.check_and_update_cache(request, i)
            self._log.append(("look_up", request_id, i))
        end = live.computed + plan.tokens + self.parameters.lookahead
        here.scheduled[request_id] = plan.tokens
        here.tokens_left -= plan.tokens
        here.gathers[request_id] = tuple(
            i
            for i, item in enumerate(request.mm_features)
            if item.position < end and item.end > live.computed
        )
        self._log.append(("schedule", request_id, plan.tokens))

    def _preempt(self, live: _Live) -> None:
        """The request loses its blocks, its references, and its place in this pass.

        What was to be encoded in its name goes to another request that has hit it since, or is
        not allocated after all. What an earlier pass encoded stays cached.
        """
        request, here = live.request, self._pass
        request_id = request.request_id
        here.tokens_left += here.scheduled.pop(request_id, 0)
        here.gathers.pop(request_id, None)
        for i in here.encodes.pop(request_id, ()):
            heir = self.withdraw_encoding(request, i)
            if heir is not None:
                here.encodes.setdefault(heir[0], []).append(heir[1])
            else:
                here.encoder_left += request.get_num_encoder_embeds(i)
        self.manager.free(request)
        self._blocks.free(request_id)
        live.computed = 0
        self._running.remove(live)
        self._waiting.insert(0, live)
        here.preempted.append(request_id)
        self._log.append(("preempt", request_id, -1))

    def _dispatch(self) -> PassOutput:
        here = self._pass
        self._log.append(("dispatch", "", -1))
        ordered = frozenset((r, i) for r, inputs in here.encodes.items() for i in inputs)
        first = [(live.request, live.covered) for live in self._first_scheduled()]
        output = PassOutput(
            num_scheduled_tokens=here.scheduled,
            scheduled_encoder_inputs={r: tuple(i) for r, i in here.encodes.items()},
            gathered_inputs=here.gathers,
            payloads=self.payloads(ordered, first),
            free_encoder_mm_hashes=tuple(self.manager.get_freed_mm_hashes()),
            preempted=tuple(here.preempted),
            finished=tuple(self._finished),
            decisions=tuple(self._log),
        )
        for request_id in here.scheduled:
            self._live[request_id].known = True
        self._finished.clear()
        self._log.clear()
        return output

    def _first_scheduled(self) -> list[_Live]:
        """The requests of which the worker hears for the first time."""
        return [live for r in self._pass.scheduled if not (live := self._live[r]).known]

    # --- the decisions that the specification names --------------------------------------------

    def withdraw_encoding(self, request: EngineRequest, input_id: int) -> Place | None:
        """A request is preempted in the very pass that was to encode its input.

        Returns:
            The input, of another request that has hit the entry since, in whose name it is encoded
            instead; None where nobody has, and the allocation is undone.
        """
        return self.manager.withdraw(request, input_id)

    def give_back(self, request: EngineRequest) -> None:
        """A waiting request gets no blocks: the references of its hits go back (S5)."""
        self.manager.free(request)

    def skip_waiting(self, request: EngineRequest) -> None:
        """No tokens are left for a waiting request: the references of its hits go back (S5)."""
        self.manager.free(request)

    def payloads(
        self, ordered: frozenset[Place], first: Sequence[tuple[EngineRequest, int]]
    ) -> frozenset[Place]:
        """The inputs whose raw item travels with this output.

        Args:
            ordered: The inputs that the output orders to encode: the raw item travels with the
                order (S8).
            first: The requests of which the worker hears for the first time, each with the number
                of tokens that a prefix hit covers.
        """
        return ordered
