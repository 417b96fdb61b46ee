"""The audit of `check`: a reference made wrong, in any part of its state, is noticed by it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager
from mmcache.errors import NoRoomError
from mmcache_conformance.logs.check import ModelDisagrees, check_log
from mmcache_conformance.logs.follow import REFERENCES, Follower
from mmcache_conformance.logs.format import (
    Allocated,
    Asked,
    Created,
    Freed,
    LogEvent,
    LookedUp,
    Reported,
)
from mmcache_conformance.logs.project import projection, state_of
from mmcache_conformance.logs.verdict import Checked
from mmcache_conformance.oracle.systems import specified
from mmcache_vectors.manager import Manager
from tests.known_bad.managers import UnfilteredReport
from tests.support.logs import lines_of, recorded

Damage = Callable[..., Any]


def damaged(kind: Manager, method: str, damage: Damage) -> type[EncoderCacheManager]:
    """The reference, with something done to its state after each call of one method."""
    base = REFERENCES[kind]

    def call(self: Any, *given: Any) -> Any:
        returned = getattr(base, method)(self, *given)
        damage(self, *given)
        return returned

    return type(f"{method}_{damage.__name__}", (base,), {method: call})


def answering(
    kind: Manager, method: str, answer: Callable[[Any], Any]
) -> type[EncoderCacheManager]:
    """The reference, with another answer to one method and the right state."""
    base = REFERENCES[kind]

    def call(self: Any, *given: Any) -> Any:
        return answer(getattr(base, method)(self, *given))

    return type(f"{method}_answers", (base,), {method: call})


def added(name: str, number: int) -> Damage:
    def damage(self: Any, *given: Any) -> None:
        setattr(self, name, getattr(self, name) + number)

    damage.__name__ = name
    return damage


def hash_of(request: Any, input_id: int) -> str:
    return str(request.mm_features[input_id].identifier)


def cached(self: Any, request: Any, input_id: int) -> None:
    self.cached.pop(hash_of(request, input_id))


def references(self: Any, request: Any, input_id: int) -> None:
    self.cached[hash_of(request, input_id)].add("nobody")


def freeable(self: Any, request: Any, input_id: int) -> None:
    self.freeable[hash_of(request, input_id)] = 1


def order(self: Any, *given: Any) -> None:
    items = list(self.freeable.items())
    self.freeable.clear()
    self.freeable.update(reversed(items))


def freed(self: Any, *given: Any) -> None:
    self.freed.clear()


def held(self: Any, request: Any, input_id: int) -> None:
    self._held.setdefault(request.request_id, {})[input_id] = "A"


def allocated(self: Any, request: Any, input_id: int) -> None:
    self.allocated.remove(hash_of(request, input_id))


def charged(self: Any, request: Any, input_id: int) -> None:
    self._charged.setdefault(request.request_id, {})[input_id] = 1


def to_free(self: Any, *given: Any) -> None:
    self.to_free = ["nowhere"]


class ResetsByHalf(EncoderCacheManager):
    def reset(self) -> None:
        kept = dict(getattr(self, "cached", {}))
        super().reset()
        self.cached |= kept


class RaisesAnError(EncoderCacheManager):
    def allocate(self, request: Any, input_id: int) -> None:
        raise NoRoomError("there is none")


WRONG_LEDGERS: list[type[EncoderCacheManager]] = [
    damaged("encoder_cache", "allocate", added("num_free_slots", 1)),
    damaged("encoder_cache", "free", added("num_freeable_slots", -1)),
    damaged("encoder_cache", "allocate", cached),
    damaged("encoder_cache", "allocate", references),
    damaged("encoder_cache", "allocate", freeable),
    damaged("encoder_cache", "free", order),
    damaged("encoder_cache", "can_allocate", freed),
    damaged("encoder_cache", "free_encoder_input", held),
    answering("encoder_cache", "check_and_update_cache", lambda hit: not hit),
    answering("encoder_cache", "can_allocate", lambda admitted: not admitted),
    answering("encoder_cache", "get_freed_mm_hashes", lambda told: [*told, "nowhere"]),
    ResetsByHalf,
    RaisesAnError,
]

WRONG_ENCODER_DECODERS: list[type[EncoderCacheManager]] = [
    damaged("encoder_decoder", "allocate", added("num_free_slots", 1)),
    damaged("encoder_decoder", "free", added("num_free_slots", 1)),
    damaged("encoder_decoder", "allocate", allocated),
    damaged("encoder_decoder", "free_encoder_input", charged),
    damaged("encoder_decoder", "get_freed_mm_hashes", to_free),
    answering("encoder_decoder", "check_and_update_cache", lambda hit: not hit),
]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """What the right reference did, with resets in it."""
    found = recorded(tmp_path_factory.mktemp("log"), passes=240)
    assert any(b'"reset"' in line for line in found)
    return found


def check(log: list[bytes], cls: type[EncoderCacheManager], audit_every: int = 1) -> Checked:
    kind: Manager = (
        "encoder_decoder" if issubclass(cls, EncoderDecoderCacheManager) else "encoder_cache"
    )
    references = {**REFERENCES, kind: cls}
    return check_log(lambda: log, "log", audit_every=audit_every, references=references)


@pytest.mark.parametrize(
    "cls", [*WRONG_LEDGERS, *WRONG_ENCODER_DECODERS], ids=lambda cls: cls.__name__
)
def test_a_reference_made_wrong_disagrees(log: list[bytes], cls: type[EncoderCacheManager]) -> None:
    with pytest.raises(ModelDisagrees):
        check(log, cls)


@pytest.mark.parametrize("audit_every", [50, 10**9])
def test_no_log_is_accused_by_a_reference_that_went_astray(
    log: list[bytes], audit_every: int
) -> None:
    """The free slots go wrong at every allocation, and soon an admission: the log is right."""
    with pytest.raises(ModelDisagrees, match="free_slots is"):
        check(log, WRONG_LEDGERS[0], audit_every=audit_every)


class GoesAstrayLate(EncoderCacheManager):
    """A slot is lost at the sixtieth allocation."""

    allocations = 0

    def allocate(self, request: Any, input_id: int) -> None:
        super().allocate(request, input_id)
        self.allocations += 1
        if self.allocations == 60:
            self.num_free_slots -= 1
            self.num_freeable_slots -= 1


def test_the_calls_before_an_accusation_are_looked_at_however_late_it_comes(
    log: list[bytes],
) -> None:
    with pytest.raises(ModelDisagrees, match="free_slots is"):
        check(log, GoesAstrayLate, audit_every=10**9)


def test_only_what_differs_is_told(log: list[bytes]) -> None:
    """The free slots go wrong, and of what did not nothing is said."""
    with pytest.raises(ModelDisagrees) as told:
        check(log, WRONG_LEDGERS[0])
    differing = str(told.value).partition("by the interpreter, ")[2].split("; ")
    assert {part.split()[0] for part in differing} <= {"free_slots", "freeable_slots"}
    assert all(a != b for _, a, b in (re.split(" is |, not ", part) for part in differing))


def test_the_first_call_is_audited_and_then_one_in_so_many() -> None:
    log = created_then(*(Reported("m", k, ()) for k in range(1, 13)))
    for every, audited in ((1, 12), (3, 4), (5, 3), (12, 1), (100, 1)):
        assert check(log, EncoderCacheManager, audit_every=every).audited == audited, every


def test_only_what_was_compared_is_counted(log: list[bytes]) -> None:
    found = check(log, EncoderCacheManager, audit_every=100)
    assert found.audited == pytest.approx(found.calls / 100, abs=2)


@pytest.mark.parametrize("answer", [True, False, set()])
def test_nobody_is_accused_before_the_interpreter_was_asked(
    log: list[bytes], monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    """What is read off the reference is wrong: that is no fault of the log."""
    right = Follower.answer

    def wrong(self: Follower, event: LogEvent) -> Any:
        about = Reported if isinstance(answer, set) else LookedUp | Asked
        if isinstance(event, about) and right(self, event) != answer:
            return answer
        return right(self, event)

    monkeypatch.setattr(Follower, "answer", wrong)
    with pytest.raises(ModelDisagrees, match="the interpreter says"):
        check(log, EncoderCacheManager, audit_every=10**9)


def created_then(*events: LogEvent) -> list[bytes]:
    return lines_of([Created("m", 0, "encoder_cache", 4), *events])


def test_a_mistake_that_log_and_follower_share_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """L1: Both report the unfiltered list: the interpreter alone knows better."""

    def answer(self: Follower, event: LogEvent) -> Any:
        return set(self.manager.freed) if isinstance(event, Reported) else right(self, event)

    right = Follower.answer
    monkeypatch.setattr(Follower, "answer", answer)
    lines = created_then(
        Allocated("m", 1, "r", 0, "A", 4),
        Freed("m", 2, "r"),
        Asked("m", 3, "q", 0, "B", 4, 4, 0, True),
        Allocated("m", 4, "q", 1, "A", 4),
        Reported("m", 5, ("A",)),
    )
    with pytest.raises(ModelDisagrees, match="the interpreter says"):
        check(lines, UnfilteredReport)


def test_a_duty_that_the_follower_does_not_know_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follower, "_refusal", lambda self, event: None)
    lines = created_then(
        Allocated("m", 1, "r", 0, "A", 4), Asked("m", 2, "q", 0, "A", 4, 4, 0, False)
    )
    with pytest.raises(ModelDisagrees, match="the interpreter refuses it: missed"):
        check(lines, EncoderCacheManager)


@pytest.mark.parametrize("kind", ["encoder_cache", "encoder_decoder"])
def test_the_state_has_every_variable_of_the_specification(kind: Manager) -> None:
    follower = Follower(Created("m", 0, kind, 8))
    event = Allocated("m", 1, "r", 0, "A", 4)
    state = state_of(follower, projection(follower, event))
    assert set(state) == {v.name for v in specified(kind).variables}


def test_the_log_of_nothing_is_not_audited(tmp_path: Path) -> None:
    lines = lines_of([Created("m", 0, "encoder_cache", 8)])
    found = check_log(lambda: lines, "log", audit_every=1)
    assert (found.calls, found.audited) == (0, 0)
