"""Copies share nothing that changes, and fingerprints tell apart what is different."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Hashable
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcache_conformance.exhaust.marks import Marker
from mmcache_conformance.exhaust.pieces import frozen, orders
from mmcache_conformance.exhaust.snapshots import NotPlain, snapshots_for

scalars = st.one_of(st.integers(0, 3), st.sampled_from("ab"), st.none(), st.booleans())


def containers(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inside, max_size=3),
        st.sets(scalars, max_size=3),
        st.dictionaries(st.sampled_from("xyz"), inside, max_size=3),
        st.dictionaries(st.sampled_from("xyz"), inside, max_size=3).map(OrderedDict),
        st.lists(inside, max_size=3).map(deque),
        st.lists(inside, max_size=2).map(tuple),
    )


values = st.recursive(scalars, containers, max_leaves=8)
states = st.fixed_dictionaries({"one": values, "two": values})


class Thing:
    def __init__(self, **state: Any) -> None:
        vars(self).update(state)


def nothing(snapshot: object) -> NoReturn:
    raise AssertionError("a plain object is not observed")


class Plain:
    """Told apart by which it is: a copy would not be it."""

    def __repr__(self) -> str:
        return "Plain()"


@dataclass
class Point:
    x: int
    ys: list[int]


@dataclass(slots=True)
class Slotted:
    x: int
    ys: list[int]


@dataclass
class Quiet:
    """It compares less than it knows."""

    x: int
    y: int = field(compare=False)


@dataclass(frozen=True)
class Key:
    name: str


@dataclass
class Node:
    name: str
    next: Node | None = None


class Pair(NamedTuple):
    x: int
    ys: list[int]


class Colour(Enum):
    RED = 1
    BLUE = 2


ONE = Point(1, [2])


def enclosing(value: object) -> Any:
    return lambda: value


@pytest.mark.parametrize(
    "value",
    [Point(1, [2]), Slotted(1, [2]), Quiet(1, 2), Pair(1, [2]), {Key("a"): {Key("b")}}, Colour.RED,
     defaultdict(list, a=[1]), Counter("aab"), deque([1, 2], maxlen=2), {("a", 1): [[]]}],
    ids=repr,
)  # fmt: skip
def test_what_is_plain_is_copied_as_what_it_is(value: Any) -> None:
    snapshots = snapshots_for(Thing(value=value))
    assert snapshots.plain
    copied = snapshots.copy({"value": value})["value"]
    assert (type(copied), copied) == (type(value), value)
    if isinstance(value, defaultdict | deque):
        assert getattr(copied, "default_factory", None) == getattr(value, "default_factory", None)
        assert getattr(copied, "maxlen", None) == getattr(value, "maxlen", None)
    for part in ("ys", "x"):
        if isinstance(getattr(value, part, None), list):
            assert getattr(copied, part) is not getattr(value, part)


def test_what_is_one_stays_one_and_circles_end() -> None:
    first = Node("a")
    first.next = Node("b", first)
    state = {"nodes": {"a": first, "b": first.next}, "head": first}
    snapshots = snapshots_for(Thing(**state))
    copied = snapshots.copy(state)
    assert copied["head"] is copied["nodes"]["a"] is copied["nodes"]["b"].next is not first
    assert snapshots.fingerprint(copied, nothing) == snapshots.fingerprint(state, nothing)
    apart = {**copied, "head": Node("a", copied["nodes"]["b"])}
    assert snapshots.fingerprint(apart, nothing) != snapshots.fingerprint(state, nothing)


def test_a_call_that_changes_what_is_not_compared_changes_the_state() -> None:
    snapshots = snapshots_for(Thing(value=Quiet(1, 2)))
    assert not snapshots.same({"value": Quiet(1, 2)}, {"value": Quiet(1, 3)})


@given(states, states)
def test_copies_are_equal_and_share_nothing_mutable(first: Any, second: Any) -> None:
    snapshots = snapshots_for(Thing(**first))
    snapshots.learn(second)
    for state in (first, second):
        copied, kept = snapshots.copy(state), deepcopy(state)
        assert copied == kept
        for value in copied.values():
            ruin(value)
        assert state == kept


def ruin(value: Any) -> None:
    """Change everything in it that can be changed."""
    if isinstance(value, dict):
        for inner in value.values():
            ruin(inner)
        value["ruined"] = 1
    elif isinstance(value, list | deque | tuple):
        for inner in value:
            ruin(inner)
        if not isinstance(value, tuple):
            value.append("ruined")
    elif isinstance(value, set):
        value.add("ruined")


@given(states, states)
def test_the_fingerprint_does_not_depend_on_what_was_seen_before(first: Any, second: Any) -> None:
    unprepared, prepared = snapshots_for(Thing(**first)), snapshots_for(Thing(**second))
    assert unprepared.fingerprint(second, nothing) == prepared.fingerprint(second, nothing)
    copied = prepared.copy(second)
    assert prepared.fingerprint(copied, nothing) == prepared.fingerprint(second, nothing)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (["a", "b", "a"], ["b", "a"], True),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), False),
        (deque("ab"), deque("ba"), False),
        (["a"], ["b"], False),
        ({"a": {1}}, {"a": {1, 2}}, False),
        ({}, [], False),
        (set(), [], False),
        (Point(1, [2]), Point(1, [2]), True),
        (Point(1, [2]), Point(1, [3]), False),
        (Slotted(1, [2]), Slotted(1, [3]), False),
        (Point(1, []), Slotted(1, []), False),
        (Quiet(1, 2), Quiet(1, 3), False),
        (defaultdict(list, a=[1]), defaultdict(list, a=[1]), True),
        (Pair(1, [2]), Pair(1, [3]), False),
        (Colour.RED, Colour.BLUE, False),
        ([ONE, ONE], [ONE, Point(1, [2])], False),
    ],
)
def test_what_counts_as_one_state(one: Any, other: object, same: bool) -> None:
    snapshots = snapshots_for(Thing(value=one))
    prints = [snapshots.fingerprint({"value": v}, nothing) for v in (one, other)]
    assert (prints[0] == prints[1]) is same


@pytest.mark.parametrize(
    "value",
    [
        object(),
        SimpleNamespace(),
        lambda x=[]: x,
        (lambda x: lambda: x)(object()),
        {"a": [object()]},
        {Plain(): 1},
        {Plain()},
    ],
    ids=["object", "namespace", "function", "closure", "object inside", "a key", "a member"],
)
def test_anything_else_is_opaque(value: Any) -> None:
    assert not snapshots_for(Thing(value=value)).plain


def test_attributes_may_come_but_not_of_any_kind() -> None:
    snapshots = snapshots_for(Thing(value=1))
    snapshots.learn({"value": 1, "more": 2})
    with pytest.raises(NotPlain, match="a object in the state"):
        snapshots.learn({"value": object()})


# --- marks -------------------------------------------------------------------------------------


class _Text(str):
    """Equal to a text, and written like one."""


class _Table(dict[str, int]):
    """Equal to a dict, and written like one."""


class _Colour(Enum):
    RED = 1

    def __repr__(self) -> str:
        return "1"


def _shared() -> dict[str, Any]:
    one = ["a"]
    return {"x": one, "y": one}


def _with_attribute() -> OrderedDict[str, int]:
    made = OrderedDict(a=1)
    made.extra = 2  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"x": ["a"], "y": ["a"]}, _shared()),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, OrderedDict(a=1)),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": ["b", "c"]}, {"a": ["c", "b"]}),
        ({"a": ["b"]}, {"a": ["b", "b"]}),
        ({"a": ("b",)}, {"a": ["b"]}),
        ({"a": {1}}, {"a": frozenset({1})}),
        ({"a": deque([1], 2)}, {"a": deque([1], 3)}),
        ({"a": "b"}, {"a": b"b"}),
        ({"a": 0.0}, {"a": -0.0}),
        ({"a": None}, {}),
    ],
)
def test_what_something_tells_apart_has_two_marks(one: object, other: object) -> None:
    marker = Marker()
    marks = [marker.mark(x) for x in (one, other, one)]
    assert None not in marks
    assert marks[0] == marks[2]
    assert marks[0] != marks[1]


@pytest.mark.parametrize(
    "state",
    [
        _Text("a"),
        _Table(),
        _Colour.RED,
        object(),
        len,
        lambda: None,
        defaultdict(list),
        Counter("a"),
        _with_attribute(),
        range(3),
        threading.Lock(),
    ],
    ids=lambda state: type(state).__name__,
)
def test_what_is_not_built_in_has_no_mark(state: object) -> None:
    """It might be equal to something else, and say the same of itself."""
    marker = Marker()
    assert marker.mark({"a": [state]}) is None
    assert marker.mark({"a": [1]}) == Marker().mark({"a": [1]}), "nothing is left of the attempt"


def test_one_mark_is_one_fingerprint_and_one_order() -> None:
    """Of many states, many of them alike: what is kept by the mark is what would be worked out."""
    random = Random(3)
    marker, kept = Marker(), dict[bytes, tuple[Hashable, Hashable]]()
    again = 0
    for _ in range(3000):
        state = {name: _any_value(random, 2) for name in ("a", "b")[: random.randint(1, 2)]}
        mark = marker.mark(state)
        assert mark is not None
        found = frozen(state, {}), orders(state)
        again += mark in kept
        assert kept.setdefault(mark, found) == found
    assert again > 500


def _any_value(random: Random, depth: int) -> Any:
    if depth == 0 or random.random() < 0.4:
        return random.choice((0, 1, True, "a", "b", None))
    made = [_any_value(random, depth - 1) for _ in range(random.randint(0, 2))]
    if made and random.random() < 0.3:
        made.append(made[0])
    keys = random.sample(("k", "l", "m"), len(made))
    kind = random.randrange(5)
    if kind == 0:
        return dict(zip(keys, made, strict=True))
    if kind == 1:
        return OrderedDict(zip(keys, made, strict=True))
    if kind == 2:
        return set(keys)
    return made if kind == 3 else tuple(made)
