"""The lists of seeded faults: each can be put into the example as it is now, and changes it."""

from __future__ import annotations

import pytest

from tests.tools.faults.catalogue import LISTS, faults, sources_with


@pytest.mark.parametrize("of", LISTS)
def test_each_fault_can_be_put_in(of: str) -> None:
    as_it_is = sources_with(None)
    for fault in faults(of):
        assert fault.changes, fault.name
        assert sources_with(fault) != as_it_is, fault.name


def test_no_two_faults_have_one_name_or_do_the_same() -> None:
    every = [fault for of in LISTS for fault in faults(of)]
    assert len({fault.name for fault in every}) == len(every)
    assert len({fault.changes for fault in every}) == len(every)
    assert all(fault.why for fault in every)
