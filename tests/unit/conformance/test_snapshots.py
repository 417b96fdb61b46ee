"""Copies share nothing that changes, and fingerprints tell apart what is different."""

from __future__ import annotations

from collections import OrderedDict, deque
from copy import deepcopy
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcache_conformance.exhaust.snapshots import NotPlain, _frozen, snapshots_for

scalars = st.one_of(st.integers(0, 3), st.sampled_from("ab"), st.none(), st.booleans())


def containers(inside):
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
    def __init__(self, **state):
        vars(self).update(state)


def nothing(snapshot):
    raise AssertionError("a plain object is not observed")


@given(states, states)
def test_copies_are_equal_and_share_nothing_mutable(first, second):
    snapshots = snapshots_for(Thing(**first))
    snapshots.learn(second)
    for state in (first, second):
        copied, kept = snapshots.copy(state), deepcopy(state)
        assert copied == kept
        for value in copied.values():
            ruin(value)
        assert state == kept


def ruin(value):
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
def test_the_fingerprint_does_not_depend_on_what_was_seen_before(first, second):
    expected = tuple(_frozen(v) for _, v in sorted(second.items()))
    unprepared = snapshots_for(Thing(**first))
    assert unprepared.fingerprint(second, nothing) == expected
    prepared = snapshots_for(Thing(**second))
    assert prepared.fingerprint(second, nothing) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (["a", "b", "a"], ["b", "a"], True),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), False),
        (deque("ab"), deque("ba"), False),
        (["a"], ["b"], False),
        ({"a": {1}}, {"a": {1, 2}}, False),
    ],
)
def test_what_counts_as_one_state(one, other, same):
    snapshots = snapshots_for(Thing(value=one))
    prints = [snapshots.fingerprint({"value": v}, nothing) for v in (one, other)]
    assert (prints[0] == prints[1]) is same


@pytest.mark.parametrize("value", [object(), SimpleNamespace(), lambda: None, {"a": [object()]}])
def test_anything_else_is_opaque(value):
    assert not snapshots_for(Thing(value=value)).plain


def test_slots_are_opaque():
    class Slotted:
        __slots__ = ("value",)

    assert not snapshots_for(Slotted()).plain


def test_attributes_must_not_come_and_go():
    snapshots = snapshots_for(Thing(value=1))
    with pytest.raises(NotPlain, match="come and go: more"):
        snapshots.learn({"value": 1, "more": 2})
