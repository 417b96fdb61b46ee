"""Named sets of design switches: the protocol as it should be, and each known wrong decision.

Every wrong variant carries what is expected of it: the clauses that stop being provable, and the
actions of its shortest counterexample, from the empty cache and from the start of a pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..kernel.system import TransitionSystem
from .encoder_decoder import EncoderDecoderDesign, encoder_decoder
from .ledger import LedgerDesign, ledger

__all__ = ["RELEASES", "SPECIFIED", "VARIANTS", "Expected", "Release", "Variant"]


@dataclass(frozen=True)
class Expected:
    breaks: tuple[str, ...]
    """The clauses with an obligation that has a counterexample to induction."""
    from_init: tuple[str, ...]
    """The actions of the shortest counterexample from the empty cache."""
    from_pass: tuple[str, ...]
    """The same from any state in which a scheduling pass may begin."""


@dataclass(frozen=True)
class Variant:
    name: str
    says: str
    systems: tuple[TransitionSystem, ...]
    seen_in: tuple[str, ...] = ()
    """Public reports, or projects, of the decision."""
    expected: Expected | None = None
    """None for `specified`: everything is proved."""

    @property
    def system(self) -> TransitionSystem:
        """The one system that a wrong variant changes."""
        (system,) = self.systems
        return system


SPECIFIED = Variant("specified", "the protocol as it should be", (ledger(), encoder_decoder()))

_WRONG = (
    Variant(
        "unfiltered_report",
        "the report names every hash that was evicted, even one that is cached again",
        (ledger(LedgerDesign(report="unfiltered")),),
        ("vllm#52482",),
        Expected(
            ("L1",),
            ("allocate", "free_encoder_input", "can_allocate", "allocate", "get_freed_mm_hashes"),
            ("can_allocate", "allocate", "get_freed_mm_hashes"),
        ),
    ),
    Variant(
        "report_not_cleared",
        "reading the report does not clear it",
        (ledger(LedgerDesign(report="not_cleared")),),
        (),
        Expected(
            ("L2",),
            ("allocate", "free_encoder_input", "can_allocate", "get_freed_mm_hashes"),
            ("can_allocate", "get_freed_mm_hashes"),
        ),
    ),
    Variant(
        "report_nothing",
        "the report is always empty, so the worker never drops anything",
        (ledger(LedgerDesign(report="nothing")),),
        ("vllm#39544",),
        Expected(
            ("L2",),
            ("allocate", "free_encoder_input", "can_allocate", "get_freed_mm_hashes"),
            ("can_allocate", "get_freed_mm_hashes"),
        ),
    ),
    Variant(
        "first_occurrence_release",
        "a request loses its reference when the first of several positions is freed",
        (ledger(LedgerDesign(reference_ends_at="first_occurrence")),),
        ("vllm#54284", "vllm-ascend#16781"),
        Expected(("L8", "L9"), ("allocate", "free_encoder_input"), ("free_encoder_input",)),
    ),
    Variant(
        "evict_newest_first",
        "eviction takes the most recently unreferenced hash first",
        (ledger(LedgerDesign(evicts="newest")),),
        (),
        Expected(("L6",), ("allocate", "allocate", "free", "can_allocate"), ("can_allocate",)),
    ),
    Variant(
        "evict_referenced",
        "eviction does not ask whether a request still references the hash",
        (ledger(LedgerDesign(evicts="referenced")),),
        (),
        Expected(
            ("L4", "L8", "L6"),
            ("allocate", "allocate", "free_encoder_input", "can_allocate"),
            ("can_allocate",),
        ),
    ),
    Variant(
        "refusal_evicts",
        "can_allocate makes room before it decides to refuse",
        (ledger(LedgerDesign(refusal="evicts")),),
        (),
        Expected(("L7",), ("allocate", "free_encoder_input", "can_allocate"), ("can_allocate",)),
    ),
    Variant(
        "release_credits_twice",
        "freeing an input whose hash nobody references credits its size again",
        (ledger(LedgerDesign(repeated_release="credited")),),
        (),
        Expected(
            ("L4", "L9"),
            ("allocate", "free_encoder_input", "free_encoder_input"),
            ("free_encoder_input",),
        ),
    ),
    Variant(
        "same_pass_double_charge",
        "a hash that is allocated twice in one pass is charged twice",
        (ledger(LedgerDesign(repeated_allocation="charged")),),
        ("vllm#23544",),
        Expected(("L3",), ("allocate", "allocate_again"), ("allocate_again",)),
    ),
    Variant(
        "reset_keeps_references",
        "reset forgets the hashes but not which positions hold them",
        (ledger(LedgerDesign(reset="keeps_references")),),
        (),
        Expected(("L8", "L10"), ("allocate", "reset"), ("reset",)),
    ),
    Variant(
        "encoder_decoder_repeated_credit",
        "encoder-decoder: every release credits the size, also of an input that is not charged",
        (encoder_decoder(EncoderDecoderDesign(credit="repeated")),),
        ("vllm#55733", "vllm#51228"),
        Expected(("E1",), ("free",), ("free",)),
    ),
    Variant(
        "encoder_decoder_same_pass_notice",
        "encoder-decoder: a hash is reported in the pass that allocates it, before it is encoded",
        (encoder_decoder(EncoderDecoderDesign(notice="same_pass")),),
        ("vllm#32789",),
        Expected(("E2",), ("allocate", "get_freed_mm_hashes"), ("get_freed_mm_hashes",)),
    ),
)

VARIANTS: dict[str, Variant] = {v.name: v for v in (SPECIFIED, *_WRONG)}


@dataclass(frozen=True)
class Release:
    """The variant that describes a released engine: which decisions its source takes."""

    ledger: TransitionSystem
    encoder_decoder: TransitionSystem


def _vllm(**decisions: str) -> Release:
    """All releases charge a repeated allocation, and credit repeated releases (E1)."""
    design = LedgerDesign(repeated_allocation="charged", **decisions)  # type: ignore[arg-type]
    return Release(ledger(design), encoder_decoder(EncoderDecoderDesign(credit="repeated")))


RELEASES: dict[str, Release] = {
    "vllm:0.27.1": _vllm(report="unfiltered", reference_ends_at="first_occurrence"),
    "vllm:0.28.0": _vllm(reference_ends_at="first_occurrence"),
    "vllm:0.33.0": _vllm(),
}
