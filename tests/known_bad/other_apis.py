"""Managers with another API than the protocol's: nothing can be said of their clauses.

Each is a small class as a fork might have it. Its attribute `says` is what the harness must say of
it, before it plays any vector.
"""

from __future__ import annotations

from typing import Any, ClassVar

from mmcache import EncoderCacheManager

__all__ = ["OTHER_APIS"]


class OtherApi:
    """What all of them have; `says` is a part of the sentence."""

    says: ClassVar[str]

    def __init__(self, cache_size: int) -> None:
        self._inner = EncoderCacheManager(cache_size)

    def check_and_update_cache(self, request: Any, input_id: int) -> Any:
        return self._inner.check_and_update_cache(request, input_id)

    def can_allocate(self, *arguments: Any) -> Any:
        return self._inner.can_allocate(*arguments)

    def allocate(self, request: Any, input_id: int) -> Any:
        return self._inner.allocate(request, input_id)

    def free_encoder_input(self, request: Any, input_id: int) -> Any:
        return self._inner.free_encoder_input(request, input_id)

    def free(self, request: Any) -> Any:
        return self._inner.free(request)

    def get_freed_mm_hashes(self) -> Any:
        return self._inner.get_freed_mm_hashes()


class EarlierAdmission(OtherApi):
    says = "`can_allocate` takes 2 arguments, not 4"

    def can_allocate(self, request: Any, input_id: int) -> bool:
        return True


class EarlierRelease(OtherApi):
    says = "`free_encoder_input` takes 3 arguments, not 2"

    def free_encoder_input(self, request: Any, input_id: int, size: int) -> None:  # type: ignore[override]
        self._inner.free_encoder_input(request, input_id)


class NoArgumentsAtAll(OtherApi):
    says = "`check_and_update_cache` takes 0 arguments, not 2"

    def check_and_update_cache(self) -> bool:  # type: ignore[override]
        return False


class WithOptions(OtherApi):
    says = "`free` takes 2 to 3 arguments, not 1"

    def free(self, request: Any, reason: str, hard: bool = False) -> None:  # type: ignore[override]
        self._inner.free(request)


class ByName(OtherApi):
    says = "`reset` needs `weights` by name"

    def reset(self, *, weights: str) -> None:
        self._inner.reset()


class AnotherOrder(OtherApi):
    says = "`can_allocate` takes its arguments in another order"

    def can_allocate(
        self, request: Any, input_id: int, num_embeds_to_schedule: int, encoder_compute_budget: int
    ) -> bool:
        return self._inner.can_allocate(
            request, input_id, encoder_compute_budget, num_embeds_to_schedule
        )


class Asynchronous(OtherApi):
    says = "`allocate` is asynchronous"

    async def allocate(self, request: Any, input_id: int) -> None:
        self._inner.allocate(request, input_id)


class AnswersMore(OtherApi):
    says = "`can_allocate` answers a tuple, not yes or no"

    def can_allocate(self, *arguments: Any) -> tuple[bool, list[str]]:
        return self._inner.can_allocate(*arguments), []


class RaisesInsteadOfRefusing(OtherApi):
    says = "`can_allocate` answers nothing, not yes or no"

    def can_allocate(self, *arguments: Any) -> None:
        if not self._inner.can_allocate(*arguments):
            raise MemoryError


class ReadsAnotherRequest(OtherApi):
    says = "it reads `mm_inputs` of a request"

    def allocate(self, request: Any, input_id: int) -> None:
        self._inner.allocate(request.mm_inputs[input_id], input_id)


class ReadsAnotherItem(OtherApi):
    says = "it reads `content_hash` of an item of a request"

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        return request.mm_features[input_id].content_hash in self._inner.cached


class HiddenSignature(OtherApi):
    """The arguments cannot be seen before the call."""

    says = "takes 3 positional arguments but 5 were given"

    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)

        class Call:
            def __call__(self, request: Any, input_id: int) -> bool:
                return True

            @property
            def __signature__(self) -> Any:
                raise ValueError

        self.can_allocate = Call()  # type: ignore[method-assign]


class ChargesOnAdmission(OtherApi):
    """Admission and charge are one, under the protocol's own names."""

    says = "`can_allocate` charges already, and `allocate` does not"

    def can_allocate(self, request: Any, input_id: int, budget: int, pending: int) -> bool:
        admitted = self._inner.can_allocate(request, input_id, budget, 0)
        if admitted:
            self._inner.allocate(request, input_id)
        return admitted

    def allocate(self, request: Any, input_id: int) -> None:
        pass

    @property
    def num_free_slots(self) -> int:
        return self._inner.num_free_slots


class Abstract(OtherApi):
    says = "it has no `get_freed_mm_hashes`"

    def get_freed_mm_hashes(self) -> Any:
        raise NotImplementedError


class TakesAtOnce:
    """Admission charges, and the call of that name is missing; the report is unfiltered, too."""

    says = "it has no `can_allocate`; it has `try_allocate`, which is another API"

    def __init__(self, cache_size: int) -> None:
        self._inner = EncoderCacheManager(cache_size)

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        return self._inner.check_and_update_cache(request, input_id)

    def try_allocate(self, request: Any, input_id: int, budget: int, pending: int) -> bool:
        admitted = self._inner.can_allocate(request, input_id, budget, pending)
        if admitted:
            self._inner.allocate(request, input_id)
        return admitted

    def allocate(self, request: Any, input_id: int) -> None:
        pass

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        self._inner.free_encoder_input(request, input_id)

    def free(self, request: Any) -> None:
        self._inner.free(request)

    def get_freed_mm_hashes(self) -> list[str]:
        return list(self._inner.freed)


OTHER_APIS: tuple[type[Any], ...] = (*OtherApi.__subclasses__(), TakesAtOnce)
