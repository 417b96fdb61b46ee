"""A tiny multimodal model, made on the spot: two layers, random weights, no hub.

The first token that it generates depends on the image, so a wrong embedding can be seen in the
output. It is made with what the environment of vLLM has (transformers, tokenizers, torch).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = [
    "IMAGE",
    "IMAGE_EMBEDS",
    "IMAGE_SIDE",
    "IMAGE_TOKENS",
    "MARK",
    "WORDS",
    "count_whole_images",
    "make_model",
]

IMAGE_SIDE = 80
"""Pixels. Patches of 8 make 10 by 10, and two by two of them are one embedding."""
IMAGE_EMBEDS = 25
IMAGE_TOKENS = 28
"""An image in the prompt: its embeddings, and three tokens around them."""
IMAGE = "<image>"
"""Stands for an image in the text of a prompt."""
MARK = "model.ready"
"""Stands in the folder of a model that is whole."""

_SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
_AROUND = ("<fake_token_around_image>", IMAGE, "<end_of_utterance>", "<global-img>")
_VOCABULARY = 256
WORDS = tuple(f"w{k}" for k in range(_VOCABULARY - len(_SPECIAL) - len(_AROUND)))
"""The words of a prompt, one token each."""


def make_model(folder: Path) -> None:
    """Write configuration, weights, tokenizer and processor, unless they are there already.

    Raises:
        ImportError: What makes a model is not installed.
        OSError: It cannot be written.
    """
    if (folder / MARK).is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    import torch
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration

    words = (*_SPECIAL, *_AROUND, *WORDS)
    numbers = {word: k for k, word in enumerate(words)}
    _processor(numbers).save_pretrained(folder)
    config = Idefics3Config(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "patch_size": 8,
            "image_size": IMAGE_SIDE,
        },
        text_config={
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "vocab_size": _VOCABULARY,
            "max_position_embeddings": 1 << 14,
            "pad_token_id": numbers["<pad>"],
            "bos_token_id": numbers["<s>"],
            "eos_token_id": numbers["</s>"],
        },
        scale_factor=2,
        image_token_id=numbers[IMAGE],
        pad_token_id=numbers["<pad>"],
    )
    torch.manual_seed(0)
    model = Idefics3ForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                # With smaller weights every image would lead to one token.
                parameter.normal_(0, 0.25)
    model.save_pretrained(folder)
    path = folder / "config.json"
    written = json.loads(path.read_text())
    written["architectures"] = ["Idefics3ForConditionalGeneration"]
    path.write_text(json.dumps(written))
    (folder / MARK).touch()


def _processor(numbers: dict[str, int]) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import Idefics3Processor, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=list(_AROUND),
    )
    images = _image_processor()(
        size={"longest_edge": IMAGE_SIDE},
        max_image_size={"longest_edge": IMAGE_SIDE},
        do_image_splitting=False,
    )
    return Idefics3Processor(images, wrapped, image_seq_len=IMAGE_EMBEDS)


def _image_processor() -> Any:
    """The one that needs no torchvision, where this release of transformers has two."""
    try:
        from transformers.models.idefics3 import image_processing_pil_idefics3 as own
    except ImportError:
        from transformers import Idefics3ImageProcessor

        return Idefics3ImageProcessor
    return own.Idefics3ImageProcessorPil


def count_whole_images() -> None:
    """Have an image that is not cut into pieces counted as one piece, in this process.

    Transformers 5 says none, which vLLM believes up to 0.31 and then drops the image.
    """
    cls = _image_processor()
    count = cls.get_number_of_image_patches

    def counting(self: Any, *arguments: Any, **named: Any) -> Any:
        found = count(self, *arguments, **named)
        if isinstance(found, tuple):
            return (max(found[0], 1), *found[1:])
        return max(found, 1)

    cls.get_number_of_image_patches = counting
