"""A real vLLM `Scheduler`, without a model, weights, a GPU or a network.

Needs vLLM's Python files and torch on the path; no compiled part of vLLM is used. The scheduler and
its configuration are vLLM's own. Replaced are the two places that would look at a model: what its
class supports, and how large its items are.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

__all__ = ["SchedulerSettings", "make_scheduler"]


@dataclasses.dataclass(frozen=True)
class SchedulerSettings:
    """What matters of a configuration. Sizes are in tokens; an item's embeddings are its tokens."""

    policy: str = "fcfs"
    """`fcfs` or `priority`."""
    encoder_cache_size: int = 8
    encoder_budget: int = 1 << 16
    """Embeddings that one pass may encode."""
    block_size: int = 4
    num_blocks: int = 64
    """Of the KV cache; one of them is vLLM's own."""
    chunk: int = 0
    """The most tokens of a prompt in one pass (`long_prefill_token_threshold`); 0 for no limit."""
    max_num_batched_tokens: int = 64
    max_num_seqs: int = 8
    max_model_len: int = 1024
    prefix_caching: bool = False
    lookahead: int = 0
    """How many tokens past the scheduled ones a drafter reads (`num_prefill_lookahead`)."""
    chunked_items: bool = True
    """Whether an item may be computed in several passes; else `disable_chunked_mm_input`."""
    manager_class: str | None = None
    """A manager to be put into the scheduler, as `module.Class`; vLLM 0.27.1 and later."""
    scheduler_class: str | None = None
    """The scheduler, as `module:Class`, if it is not vLLM's own."""


# --- the scheduler -----------------------------------------------------------------------------

_ARCHITECTURE = "Blip2ForConditionalGeneration"

_TINY_MODEL = {
    "architectures": [_ARCHITECTURE],
    "model_type": "blip-2",
    "text_config": {
        "model_type": "opt",
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "ffn_dim": 64,
        "vocab_size": 1000,
        "max_position_embeddings": 1 << 16,
        "word_embed_proj_dim": 64,
    },
    "num_query_tokens": 4,
}
"""Any multimodal decoder would do: nothing of it is ever computed."""


def make_scheduler(settings: SchedulerSettings) -> Any:
    """A `vllm.v1.core.sched.scheduler.Scheduler`, or another class that is made as it is.

    The first takes ten seconds, of imports.

    Raises:
        LookupError: The class is none, or has no ledger, or lacks what the settings ask of it.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    import torch
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager

    config = _config(settings)
    cls = _scheduler_class(settings.scheduler_class)
    spec = FullAttentionSpec(
        block_size=settings.block_size, num_kv_heads=1, head_size=1, dtype=torch.float32
    )
    kv_cache = KVCacheConfig(
        num_blocks=settings.num_blocks,
        kv_cache_tensors=[],
        kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
    )
    with _no_model(settings, cls):
        scheduler = cls(
            vllm_config=config,
            kv_cache_config=kv_cache,
            structured_output_manager=StructuredOutputManager(config),
            block_size=settings.block_size,
            log_stats=False,
        )
    if not hasattr(scheduler, "encoder_cache_manager"):
        raise LookupError(f"{settings.scheduler_class} has no encoder_cache_manager")
    if settings.lookahead:
        # A drafter's configuration gives it; the drafter itself is not needed to schedule for it.
        if not hasattr(scheduler, "num_prefill_lookahead"):
            raise LookupError("the scheduler of this release has no num_prefill_lookahead")
        scheduler.num_prefill_lookahead = settings.lookahead
    return scheduler


def _scheduler_class(name: str | None) -> Any:
    """The class of this name. Raises `LookupError`, and whatever its module raises."""
    from vllm.v1.core.sched.scheduler import Scheduler

    if name is None:
        return Scheduler
    module, _, attribute = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise LookupError(f"{name} is not a class")
    return found


def _config(settings: SchedulerSettings) -> Any:
    from vllm.config import CacheConfig, DeviceConfig, SchedulerConfig, VllmConfig

    with _no_model(settings):
        scheduler = SchedulerConfig(
            **_known(
                SchedulerConfig,
                policy=settings.policy,
                max_num_batched_tokens=settings.max_num_batched_tokens,
                max_num_seqs=settings.max_num_seqs,
                max_model_len=settings.max_model_len,
                long_prefill_token_threshold=settings.chunk,
                enable_chunked_prefill=True,
                disable_chunked_mm_input=not settings.chunked_items,
                async_scheduling=False,
                is_encoder_decoder=False,
            )
        )
        cache = CacheConfig(
            **_known(
                CacheConfig,
                block_size=settings.block_size,
                enable_prefix_caching=settings.prefix_caching,
            )
        )
        more = {}
        if settings.manager_class is not None:
            from vllm.config.ec_manager_config import EncoderCacheManagerConfig

            more["ec_manager_config"] = EncoderCacheManagerConfig(
                encoder_cache_manager_cls=settings.manager_class
            )
        config = VllmConfig(
            model_config=_model_config(settings.max_model_len),
            cache_config=cache,
            scheduler_config=scheduler,
            device_config=DeviceConfig(device="cpu"),
            **more,
        )
    # The platform rewrites what is too small to be useful; small is what tests want.
    config.scheduler_config.max_num_batched_tokens = settings.max_num_batched_tokens
    config.scheduler_config.max_num_seqs = settings.max_num_seqs
    config.scheduler_config.long_prefill_token_threshold = settings.chunk
    config.scheduler_config.policy = settings.policy
    config.scheduler_config.disable_chunked_mm_input = not settings.chunked_items
    config.cache_config.block_size = settings.block_size
    config.cache_config.enable_prefix_caching = settings.prefix_caching
    config.cache_config.num_gpu_blocks = settings.num_blocks
    return config


@lru_cache(maxsize=8)
def _model_config(max_model_len: int) -> Any:
    from vllm.config import ModelConfig

    directory = _model_directory()
    return ModelConfig(
        model=directory.name,
        tokenizer=directory.name,
        skip_tokenizer_init=True,
        dtype="float32",
        max_model_len=max_model_len,
        enforce_eager=True,
    )


@lru_cache(maxsize=1)
def _model_directory() -> tempfile.TemporaryDirectory[str]:
    """Kept for the life of the process: some releases look into it again later."""
    directory = tempfile.TemporaryDirectory()
    (Path(directory.name) / "config.json").write_text(json.dumps(_TINY_MODEL))
    return directory


def _known(cls: Any, **values: Any) -> dict[str, Any]:
    """Those that the class of this release has."""
    names = {field.name for field in dataclasses.fields(cls)}
    names |= {f.name for f in getattr(cls, "__dataclass_fields__", {}).values()}
    return {name: value for name, value in values.items() if name in names}


@contextmanager
def _no_model(settings: SchedulerSettings, cls: type | None = None) -> Iterator[None]:
    """What would look at a model's class gets told what it would find.

    In vLLM's own module, and in every module that a part of the class comes from.
    """
    from vllm.model_executor.models import registry
    from vllm.v1.core.sched import scheduler

    class Budget:
        """In the place of `MultiModalBudget`, which runs the model's processor."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self.encoder_compute_budget = settings.encoder_budget
            self.encoder_cache_size = settings.encoder_cache_size
            self.mm_max_toks_per_item = {"image": settings.encoder_cache_size}

        def get_modality_with_max_tokens(self) -> str:
            return "image"

    def compute_budget(*_: Any, **__: Any) -> tuple[int, int]:
        """In the place of `compute_encoder_budget`, up to 0.14."""
        return settings.encoder_budget, settings.encoder_cache_size

    def inspect(self: Any, architectures: Any, model_config: Any) -> Any:
        return _model_info(registry._ModelInfo), _ARCHITECTURE

    theirs = {sys.modules[c.__module__] for c in (cls.__mro__ if cls else ())} - {scheduler}
    with ExitStack() as stack:
        for owner, name, instead, create in (
            (registry._ModelRegistry, "inspect_model_cls", inspect, False),
            (scheduler, "MultiModalBudget", Budget, True),
            (scheduler, "compute_encoder_budget", compute_budget, True),
            *((m, "MultiModalBudget", Budget, False) for m in theirs),
            *((m, "compute_encoder_budget", compute_budget, False) for m in theirs),
        ):
            if create or hasattr(owner, name):
                stack.enter_context(mock.patch.object(owner, name, instead, create=create))
        yield


def _model_info(cls: Any) -> Any:
    """A multimodal decoder, and nothing special besides."""
    yes = {"is_text_generation_model", "supports_multimodal", "supports_pp"}
    texts = {
        "architecture": _ARCHITECTURE,
        "attn_type": "decoder",
        "default_seq_pooling_type": "LAST",
        "default_pooling_type": "LAST",
        "default_tok_pooling_type": "ALL",
        "score_type": "bi-encoder",
    }
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.name in texts:
            values[field.name] = texts[field.name]
        elif "tuple" in str(field.type):
            values[field.name] = ()
        else:
            values[field.name] = field.name in yes
    return cls(**values)
