"""What a worker of vLLM would hold, by the outputs of the scheduler alone.

It keeps what either of vLLM's runners would keep, in their order of work: it drops, then encodes,
then gathers every item that the scheduled tokens overlap. `vllm-live` has one beside the runner
itself and compares them pass by pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Mirror", "Work"]


@dataclass(frozen=True)
class Work:
    """One step of the worker. Tokens and embeddings are counted, hashes are sorted."""

    tokens: Mapping[str, int] = field(default_factory=dict)
    """How many each request is given."""
    starts: Mapping[str, int] = field(default_factory=dict)
    """The position of the first of them."""
    encodes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    report: tuple[str, ...] = ()
    gathered: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    """Of the gathered, those that are not held: a runner raises at the first."""
    without_payload: tuple[str, ...] = ()
    peak: int = 0
    """Embeddings held when the encoding is done."""


class Mirror:
    """The hashes that a worker holds.

    The first runner keeps the features of a request as they came with its first output; the second
    gets them anew when the request resumes, and does not encode what it holds.

    Attributes, to be read and not written:
        held: The hashes.
    """

    def __init__(self, *, second_runner: bool = False) -> None:
        self.held: set[str] = set()
        self._second_runner = second_runner
        self._features: dict[str, list[Any]] = {}
        """For each request, the items as the worker knows them."""
        self._sizes: dict[str, int] = {}

    def reset(self) -> None:
        """Forget what is held, as the worker does when the ledger does (L10)."""
        self.held.clear()

    def step(self, output: Any) -> Work:
        """Obey one output of the scheduler."""
        starts = self._receive(output)
        encodes = {r: tuple(ids) for r, ids in output.scheduled_encoder_inputs.items()}
        self.held -= set(output.free_encoder_mm_hashes)
        features = [self._features[r][i] for r, ids in encodes.items() for i in ids]
        wanted = [f for f in features if not (self._second_runner and f.identifier in self.held)]
        # Without its payload an item is passed over in silence, as both runners do.
        self.held |= {f.identifier for f in wanted if f.data is not None}
        gathered = {
            feature.identifier
            for request_id, count in output.num_scheduled_tokens.items()
            for feature in self._features[request_id]
            if _overlaps(feature.mm_position, starts[request_id], count)
        }
        return Work(
            tokens=dict(output.num_scheduled_tokens),
            starts=starts,
            encodes=encodes,
            report=tuple(sorted(output.free_encoder_mm_hashes)),
            gathered=tuple(sorted(gathered)),
            missed=tuple(sorted(gathered - self.held)),
            without_payload=tuple(sorted({f.identifier for f in wanted if f.data is None})),
            peak=sum(self._sizes[h] for h in self.held),
        )

    def unlike(
        self, work: Work, held: Set[str], gathered: Set[str], missed: Collection[str]
    ) -> str | None:
        """What a runner that obeyed the same output has done otherwise, in words.

        Where the runner has missed something it raised, at the first such item: the mirror must
        hold the same, and miss that item too; what else the runner would have gathered is not seen.
        """
        told = []
        if held != self.held:
            told.append(f"holds {_listed(held)}, not {_listed(self.held)}")
        if missed and not set(missed) <= set(work.missed):
            told.append(f"misses {_listed(missed)}, not {_listed(work.missed)}")
        if not missed and gathered != set(work.gathered):
            told.append(f"gathers {_listed(gathered)}, not {_listed(work.gathered)}")
        if not told:
            return None
        return f"the runner does not as its mirror does: it {', and '.join(told)}"

    def _receive(self, output: Any) -> dict[str, int]:
        """The requests as this output describes them; where each of them starts."""
        for request_id in output.finished_req_ids:
            self._features.pop(request_id, None)
        starts: dict[str, int] = {}
        for new in output.scheduled_new_reqs:
            self._features[new.req_id] = list(new.mm_features)
            starts[new.req_id] = new.num_computed_tokens
        cached = output.scheduled_cached_reqs
        starts |= zip(cached.req_ids, cached.num_computed_tokens, strict=True)
        for request_id, items in getattr(output, "encoder_input_updates", {}).items():
            mine = self._features[request_id]
            for i, data in items.items():
                mine[i] = dataclasses.replace(mine[i], data=data)
        self._sizes |= {
            f.identifier: f.mm_position.length for fs in self._features.values() for f in fs
        }
        return starts


def _listed(hashes: Iterable[str]) -> str:
    return ", ".join(sorted(hashes)) or "nothing"


def _overlaps(position: Any, start: int, count: int) -> bool:
    return bool(position.offset < start + count and start < position.offset + position.length)
