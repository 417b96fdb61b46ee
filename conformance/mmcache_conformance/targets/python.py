"""Drive a Python class that has the API of vLLM's encoder cache managers.

This is the one place that knows how the API changed from release to release: what is read from a
request was renamed, parameters were renamed (they are passed by position), and methods and a
second class were added.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Manager,
    Observed,
    Parameters,
    Request,
    Reset,
)

from ..errors import TargetError, describe_exception
from ..implementation import Implementation, Kind
from .api import (
    CANNOT,
    charges_elsewhere,
    driven,
    lacks_of,
    other_answer,
    other_signature,
    without,
)
from .observe import READERS, Reader, exposes, is_no_comparison, why_not_compared
from .protocol import CALLS, MANAGERS, Answer, Case, call_name
from .values import text, truth

__all__ = ["LiveManager", "ManagerClasses", "PythonTarget", "plain_answer"]


@dataclass(frozen=True)
class ManagerClasses:
    """The classes to drive, and what is known of them beyond what they show by themselves.

    `adds` and `lacks` are capabilities. A class can also add some by an attribute
    `conformance_capabilities`.
    """

    name: str
    encoder_cache: type | None
    encoder_decoder: type | None
    version: str | None = None
    adds: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    untested: tuple[str, ...] = ()
    """The manager classes beside them, each as a target."""


Configuration = Callable[[], object]
"""Makes the `vllm_config` that a class is given."""


class PythonTarget:
    """Runs cases in this process, each on a new instance.

    `load` may raise `TargetError`, as may `configuration`, without which the `vllm_config` is None.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], ManagerClasses],
        configuration: Configuration = lambda: None,
    ) -> None:
        self.name = name
        self._load = load
        self._configuration = configuration
        self._config: object = None
        self._found: ManagerClasses | None = None
        self._classes: dict[Manager, type] = {}
        self._observed: dict[Manager, tuple[str, ...]] = {}

    def load(self) -> ManagerClasses:
        """The classes, which are loaded once. Raises `TargetError`."""
        if self._found is None:
            self._found = self._load()
        return self._found

    def start(self, *, touch: bool = True) -> Implementation:
        """As every target; `touch`: whether each call is tried on an instance."""
        found = self.load()
        self._config = self._configuration()
        capabilities: dict[Kind, tuple[str, ...]] = {}
        undriven: dict[Kind, str] = {}
        uncompared: list[str] = []
        for manager in MANAGERS:
            cls = getattr(found, manager)
            if cls is None:
                continue
            probe = self._probe(cls)
            state = _State(manager, self._probe(cls), found.lacks)
            calls, why = _offered(cls, probe, state.look if touch else None)
            if why is not None:
                undriven[manager] = why
            uncompared += [f"{manager}: {said}" for said in state.uncompared.values()]
            observed = state.observed
            added = found.adds | _added(cls)
            self._classes[manager] = cls
            self._observed[manager] = observed
            capabilities[manager] = (*calls, *observed, *sorted(added))
        about = Implementation(
            found.name,
            found.version,
            "python",
            capabilities,
            untested=found.untested,
            uncompared=tuple(uncompared),
        )
        return driven(without(about, undriven))

    runs_together = True

    def run(self, case: Case) -> tuple[Answer, ...]:
        (answers,) = self.run_together((case,))
        return answers

    def run_together(self, cases: Sequence[Case]) -> tuple[tuple[Answer, ...], ...]:
        players = [self._player(case) for case in cases]
        for k in range(max((len(case.calls) for case in cases), default=0)):
            for player in players:
                player.make(k)
        return tuple(tuple(player.answers) for player in players)

    def play_on(
        self, live: LiveManager | None, case: Case
    ) -> tuple[LiveManager, tuple[Answer, ...]]:
        """As `run`, on a manager of the same world that is there, or a new one; and the manager."""
        player = self._player(case, live)
        for k in range(len(case.calls)):
            player.make(k)
        readers = {name: READERS[case.manager][name] for name in self._observed[case.manager]}
        return LiveManager(player.manager, player.requests, readers), tuple(player.answers)

    def open(self, kind: Manager, parameters: Parameters) -> LiveManager:
        """A new manager, for whoever makes the calls one by one. Raises what its class raises."""
        manager = self._made(kind, parameters.cache_size)
        readers = {name: READERS[kind][name] for name in self._observed[kind]}
        requests = {r.request_id: _FakeRequest(r) for r in parameters.requests}
        return LiveManager(manager, requests, readers)

    def stop(self) -> None:
        self._classes = {}
        self._found = None

    def _player(self, case: Case, live: LiveManager | None = None) -> _Player:
        kind = case.manager
        if live is not None:
            return _Player(
                partial(getattr, live, "manager"), self._observed[kind], case, live.requests
            )
        make = partial(self._made, kind, case.parameters.cache_size)
        requests = {r.request_id: _FakeRequest(r) for r in case.parameters.requests}
        return _Player(make, self._observed[kind], case, requests)

    def _made(self, kind: Manager, cache_size: int) -> object:
        return _new(self._classes[kind], cache_size, self._config)

    def _probe(self, cls: type) -> object:
        """A first instance. Raises `TargetError`."""
        try:
            return _new(cls, _TOUCHED.cache_size, self._config)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            how = f"{cls.__qualname__}(cache_size={_TOUCHED.cache_size})"
            hint = ""
            if callable(getattr(cls, "create_manager", None)):
                given = "None" if self._config is None else "as given"
                how = f"{cls.__qualname__}.create_manager(cache_size={_TOUCHED.cache_size}, "
                how += f"vllm_config={given})"
            if "argument 'cache_size'" in str(error):
                hint = "; the size is given by the name `cache_size`, as vLLM gives it"
            elif self._config is None and _takes_a_configuration(cls):
                hint = "; give it a configuration: --vllm-config module:NAME"
            raise TargetError(f"{how} failed: {describe_exception(error)}{hint}") from None


def _added(cls: type) -> frozenset[str]:
    """The capabilities that the class says that it adds. Raises `TargetError`."""
    where = f"{cls.__qualname__}.conformance_capabilities"
    try:
        said: object = getattr(cls, "conformance_capabilities", ())
        names = list(said) if isinstance(said, list | tuple | set | frozenset) else [None]
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TargetError(f"{where} cannot be read: {describe_exception(error)}") from None
    if not all(type(name) is str for name in names):
        raise TargetError(f'{where} is {said!r:.80}; give a tuple of names, as in ("x-mine",)')
    return frozenset(str(name) for name in names)


_BARE: Mapping[object, Answer] = {returns: Answer(returns) for returns in (None, True, False)}
"""What most calls answer where nobody looks at the state."""


class _Player:
    """One case on a manager of its own, call by call, up to the first that fails."""

    def __init__(
        self,
        new: Callable[[], object],
        observed: Sequence[str],
        case: Case,
        requests: Mapping[str, _FakeRequest],
    ) -> None:
        self._case = case
        self.requests = requests
        self._readers = [(name, READERS[case.manager][name]) for name in observed]
        self._watched = None if case.watched is None else frozenset(case.watched)
        self.manager: Any = None
        self._failed = False
        self.answers: list[Answer] = []
        try:
            self.manager = new()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._fail(error)

    def make(self, k: int) -> None:
        """The call with this index, if there is one and none has failed before."""
        if self._failed or k >= len(self._case.calls):
            return
        try:
            returns = plain_answer(_make(self.manager, self._case.calls[k], self.requests))
            if self._watched is not None and k not in self._watched:
                self.answers.append(_BARE.get(returns) or Answer(returns))
                return
            state = {name: read(self.manager, self.requests) for name, read in self._readers}
            self.answers.append(Answer(returns, Observed(**state)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit and pytest's outcomes are answers too
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Whatever is raised is the last answer."""
        self._failed = True
        self.answers.append(Answer(error=_misfit(error) or describe_exception(error)))


class LiveManager:
    """A manager of a Python class, with the requests of its world."""

    def __init__(
        self,
        manager: object,
        requests: Mapping[str, _FakeRequest],
        readers: Mapping[str, Reader],
    ) -> None:
        self.manager = manager
        self.requests = requests
        self._readers = readers

    def around(self, manager: object) -> LiveManager:
        """Another manager of the same class, in the same world."""
        return LiveManager(manager, self.requests, self._readers)

    def bind(self, call: Call) -> Callable[[Any], object]:
        """The call as a function of the manager. It gives back whatever the method does."""
        return methodcaller(call_name(call), *_arguments(call, self.requests))

    def observed(self) -> Observed:
        """The state, as far as the class shows it."""
        requests = self.requests
        readers = self._readers.items()
        return Observed(**{name: read(self.manager, requests) for name, read in readers})


# --- making a call -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _FakeFeature:
    identifier: str

    never_changes = True

    def __deepcopy__(self, memory: object) -> _FakeFeature:
        return self


class _FakeRequest:
    """What the managers of all releases since 0.10.2 read from a request, under every name."""

    never_changes = True
    """The copy of a manager has the same requests."""

    def __deepcopy__(self, memory: object) -> _FakeRequest:
        return self

    def __init__(self, request: Request) -> None:
        self.request_id = request.request_id
        self.mm_hashes = [item.identifier for item in request.items]
        made = {name: _FakeFeature(name) for name in set(self.mm_hashes)}
        self.mm_features = [made[name] for name in self.mm_hashes]
        self.num_encoder_inputs = len(request.items)
        self.has_encoder_inputs = bool(request.items)
        self._sizes = [item.num_embeds for item in request.items]

    def get_num_encoder_embeds(self, input_id: int) -> int:
        return self._sizes[input_id]

    def get_num_encoder_tokens(self, input_id: int) -> int:
        return self._sizes[input_id]


def _new(cls: type, cache_size: int, config: object) -> object:
    """An instance, made as vLLM makes it: since 0.28.0 by `create_manager`, before by the class."""
    create = getattr(cls, "create_manager", None)
    if callable(create):
        return create(cache_size=cache_size, vllm_config=config)
    if _takes_a_configuration(cls):
        return cls(cache_size=cache_size, vllm_config=config)
    return cls(cache_size=cache_size)


def _takes_a_configuration(cls: type) -> bool:
    """Whether a `vllm_config` is given to it."""
    if callable(getattr(cls, "create_manager", None)):
        return True
    with suppress(TypeError, ValueError):
        return "vllm_config" in inspect.signature(cls).parameters
    return False


# --- before the first vector -------------------------------------------------------------------

_TOUCHED = Parameters(2, (Request("r1", (Item("A", 1), Item("B", 1))),))
_TOUCH: tuple[Call, ...] = (
    GetFreedMmHashes(),
    CheckAndUpdateCache("r1", 0),
    CanAllocate("r1", 0, 2, 0),
    Allocate("r1", 0),
    CheckAndUpdateCache("r1", 0),
    FreeEncoderInput("r1", 0),
    Free("r1"),
    GetFreedMmHashes(),
    Reset(),
)
"""Each call once or twice, as any manager must take it."""


class _State:
    """What a manager shows, and what of it cannot be compared: on a new instance, and at work."""

    def __init__(self, kind: Manager, new: object, lacks: Collection[str]) -> None:
        readers = READERS[kind].items()
        self._readers = {n: r for n, r in readers if n not in lacks and exposes(new, n)}
        self.uncompared: dict[str, str] = {}
        self._look(new, new=True)

    def look(self, probe: object) -> None:
        """On an instance after some calls."""
        self._look(probe, new=False)

    def _look(self, probe: object, *, new: bool) -> None:
        for name in self.observed:
            said = why_not_compared(probe, name, self._readers[name], _TOUCHED_BY, new=new)
            if said is not None:
                self.uncompared[name] = said

    @property
    def observed(self) -> tuple[str, ...]:
        return tuple(name for name in self._readers if name not in self.uncompared)


_TOUCHED_BY = {r.request_id: _FakeRequest(r) for r in _TOUCHED.requests}


def _offered(
    cls: type, probe: object, look: Callable[[object], None] | None
) -> tuple[list[str], str | None]:
    """The calls that the class has, and why it cannot be driven, if so.

    Each is made, and `look` sees the instance after it; without `look`, none is. A call that is
    declared and not implemented is one that it does not have. Whatever else goes wrong is for the
    vectors to find.
    """
    calls = [op for op in CALLS if _has_call(probe, op)]
    why = lacks_of(cls, calls) or other_signature(probe, calls)
    if why is not None or look is None:
        return calls, why
    free: list[object] = []
    for call in _TOUCH:
        name = call_name(call)
        if name not in calls:
            continue
        try:
            answer = _make(probe, call, _TOUCHED_BY)
        except KeyboardInterrupt:
            raise
        except NotImplementedError:
            calls.remove(name)
        except BaseException as error:
            return calls, _misfit(error)
        else:
            if (why := other_answer(name, answer)) is not None:
                return calls, why
            look(probe)
        with suppress(Exception):
            free.append(probe.num_free_slots)  # type: ignore[attr-defined]
    return calls, lacks_of(cls, calls) or charges_elsewhere(free, _TOUCHED.cache_size)


def _has_call(probe: object, name: str) -> bool:
    """Whether the instance has it, by its class or by itself, as a proxy has."""
    try:
        return callable(getattr(probe, name, None))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return False


def _misfit(error: BaseException) -> str | None:
    """Why the call could not be made as the protocol has it; None if it failed by itself."""
    if isinstance(error, AttributeError) and isinstance(error.obj, _FakeRequest | _FakeFeature):
        what = "a request" if isinstance(error.obj, _FakeRequest) else "an item of a request"
        return (
            f"{CANNOT}it reads `{error.name}` of {what}, which is given request_id, mm_features, "
            f"num_encoder_inputs and get_num_encoder_embeds(input_id), and their older names"
        )
    if is_no_comparison(error):
        return f"{CANNOT}{error}"
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code is not _make.__code__:
        frames = frames.tb_next
    if isinstance(error, TypeError) and frames is not None and frames.tb_next is None:
        return f"{CANNOT}{describe_exception(error)}"  # it never came to the method
    return None


def _make(manager: Any, call: Call, requests: Mapping[str, _FakeRequest]) -> object:
    method = getattr(manager, _NAMES[type(call)])
    if isinstance(call, _ABOUT_AN_INPUT):
        return method(requests[call.request], call.input_id)
    return method(*_arguments(call, requests))


_NAMES: Mapping[type, str] = {type(call): call_name(call) for call in _TOUCH}
_ABOUT_AN_INPUT = (CheckAndUpdateCache, Allocate, FreeEncoderInput)


def _arguments(call: Call, requests: Mapping[str, _FakeRequest]) -> tuple[object, ...]:
    if isinstance(call, _ABOUT_AN_INPUT):
        return requests[call.request], call.input_id
    if isinstance(call, CanAllocate):
        budget, pending = call.encoder_compute_budget, call.num_embeds_to_schedule
        return requests[call.request], call.input_id, budget, pending
    if isinstance(call, Free):
        return (requests[call.request],)
    return ()


def plain_answer(value: object) -> bool | tuple[str, ...] | str | None:
    """What a method returned, as an `Answer` has it."""
    if value is None or value is True or value is False:
        return value
    if (known := truth(value)) is not None:
        return known
    if isinstance(value, list | tuple | set | frozenset):
        names = [text(h) for h in value]
        if None not in names:
            return tuple(sorted(n for n in names if n is not None))
    return f"{_shown(value)}, which is of type {type(value).__qualname__}"


_LONGEST = 2000


def _shown(value: object) -> str:
    """Its `repr`, as far as it can be had and is worth reading."""
    shown = repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
