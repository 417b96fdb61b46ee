"""Released engines, described by the decisions that their sources take."""

from __future__ import annotations

from dataclasses import dataclass

from ..kernel.system import TransitionSystem
from .encoder_decoder import EncoderDecoderDesign, encoder_decoder
from .ledger import LedgerDesign, ledger

__all__ = ["RELEASES", "Release"]


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
