"""The known wrong decisions of managers: what each is, and the design that takes it.

A decision is one switch of a design, so several can be taken together: `system_of` gives the
transition system of a manager that takes all of them. The variants are made of these, one each; who
only wants to know what a manager decides need not build the engine for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ..kernel.system import TransitionSystem
from .encoder_decoder import EncoderDecoderDesign, encoder_decoder
from .ledger import LedgerDesign, ledger

__all__ = ["DECISIONS", "Decision", "system_of"]

SystemName = Literal["ledger", "encoder_decoder"]


@dataclass(frozen=True)
class Decision:
    """A wrong decision. `clause` says best how it ought to be."""

    name: str
    says: str
    system: SystemName
    switch: tuple[str, str]
    """The field of the design, and its value."""
    clause: str
    seen_in: tuple[str, ...] = ()
    """Public reports."""


DECISIONS: Mapping[str, Decision] = {
    d.name: d
    for d in (
        Decision(
            "unfiltered_report",
            "the report names every hash that was evicted, even one that is cached again",
            "ledger",
            ("report", "unfiltered"),
            "L1",
            ("vllm#52482",),
        ),
        Decision(
            "report_not_cleared",
            "reading the report does not clear it",
            "ledger",
            ("report", "not_cleared"),
            "L2",
        ),
        Decision(
            "report_nothing",
            "the report is always empty, so the worker never drops anything",
            "ledger",
            ("report", "nothing"),
            "L2",
            ("vllm#39544",),
        ),
        Decision(
            "first_occurrence_release",
            "a request loses its reference when the first of several positions is freed",
            "ledger",
            ("reference_ends_at", "first_occurrence"),
            "L8",
            ("vllm#54284", "vllm-ascend#16781"),
        ),
        Decision(
            "evict_newest_first",
            "eviction takes the most recently unreferenced hash first",
            "ledger",
            ("evicts", "newest"),
            "L6",
        ),
        Decision(
            "evict_referenced",
            "eviction does not ask whether a request still references the hash",
            "ledger",
            ("evicts", "referenced"),
            "L14",
        ),
        Decision(
            "refusal_evicts",
            "can_allocate makes room before it decides to refuse",
            "ledger",
            ("refusal", "evicts"),
            "L7",
        ),
        Decision(
            "release_credits_twice",
            "freeing an input whose hash nobody references credits its size again",
            "ledger",
            ("repeated_release", "credited"),
            "L9",
        ),
        Decision(
            "same_pass_double_charge",
            "a hash that is allocated twice in one pass is charged twice",
            "ledger",
            ("repeated_allocation", "charged"),
            "L3",
            ("vllm#23544",),
        ),
        Decision(
            "reset_keeps_references",
            "reset forgets the hashes but not which positions hold them",
            "ledger",
            ("reset", "keeps_references"),
            "L10",
        ),
        Decision(
            "encoder_decoder_repeated_credit",
            "encoder-decoder: every release credits the size, also of an input that is not charged",
            "encoder_decoder",
            ("credit", "repeated"),
            "E1",
            ("vllm#55733", "vllm#51228"),
        ),
        Decision(
            "encoder_decoder_same_pass_notice",
            "encoder-decoder: a hash is reported in the pass that allocates it, before it is "
            "encoded",
            "encoder_decoder",
            ("notice", "same_pass"),
            "E2",
            ("vllm#32789",),
        ),
    )
}


def system_of(names: Iterable[str]) -> TransitionSystem:
    """The manager that takes all of these decisions and is right otherwise.

    Raises:
        ValueError: They are not of one kind of manager, or two of them are the same switch.
    """
    return _system_of(tuple(sorted(set(names))))


@cache
def _system_of(names: tuple[str, ...]) -> TransitionSystem:
    chosen = [DECISIONS[name] for name in names]
    switches = dict(d.switch for d in chosen)
    if len({d.system for d in chosen}) != 1 or len(switches) != len(chosen):
        raise ValueError(f"no manager takes all of these decisions: {', '.join(names)}")
    if chosen[0].system == "ledger":
        return ledger(LedgerDesign(**switches))  # type: ignore[arg-type]
    return encoder_decoder(EncoderDecoderDesign(**switches))  # type: ignore[arg-type]
