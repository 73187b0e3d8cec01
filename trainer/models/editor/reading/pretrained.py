"""A pretrained encoder of the Hugging Face hub: a word is read from its first piece.

Its weights and its tokenizer are part of the agent's own weights, so that whoever has the agent needs no download.

Axes: b batch, m state, p pieces, d width.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainer.core.errors import BadData, InvalidConfig, MissingExtra, one_line
from trainer.core.format import unescape
from trainer.data.contract import OpenContract
from trainer.models.editor.reading.encoder import windowed
from trainer.models.editor.reading.pieces import WordTable

PIECES = 6  # of one word that are read
WINDOW, MARGIN = 64, 12  # words: with six pieces each they fit the 512 places that most encoders have
UNKEPT = ("_name_or_path", "auto_map", "architectures", "transformers_version", "dtype", "torch_dtype")
RATE = 0.1  # its learning rate, as a share of the rest's


def import_transformers() -> Any:
    """The package, silent: its progress and advice are no errors of ours."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("transformers", "pretrained") from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Errors of the library in one line."""
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError, TypeError) as error:
        raise InvalidConfig(f"field encoder: {where}: {one_line(error)[:200]}") from None


def describe(where: str) -> tuple[dict[str, Any], bytes]:
    """The config and the tokenizer of an encoder in a folder or on the hub."""
    library = import_transformers()
    if (Path(where).exists() or "/" not in where) and not (Path(where) / "config.json").is_file():
        raise InvalidConfig(f"field encoder: {where}: neither a folder with a config.json nor a hub id (org/name)")
    with explained(where):
        config = library.AutoConfig.from_pretrained(where)
        tokenizer = library.AutoTokenizer.from_pretrained(where, use_fast=True)
        values = {name: value for name, value in config.to_dict().items() if name not in UNKEPT}
        return json.loads(json.dumps(values)), tokenizer.backend_tokenizer.to_str().encode()


class PretrainedEncoder(WordTable):
    """Any encoder that gives a hidden state for each piece."""

    tokenizer: Tensor  # (bytes) of tokenizer.json

    def __init__(self, contract: OpenContract, config: dict[str, Any], tokenizer_bytes: int) -> None:
        super().__init__(contract, torch.zeros(PIECES, dtype=torch.int32))
        library = import_transformers()
        with explained(str(config.get("model_type"))):
            values = {name: value for name, value in config.items() if name != "model_type"}
            made = library.AutoConfig.for_model(config["model_type"], **values)
            self.model = library.AutoModel.from_config(made).float()
        self.width = int(made.hidden_size)
        self.most = int(getattr(made, "max_position_embeddings", 512)) - 2
        self.register_buffer("tokenizer", torch.zeros(tokenizer_bytes, dtype=torch.uint8))
        self.ends: tuple[int, int] | None = None

    def fill(self, where: str) -> None:
        """The pretrained weights, and the tokenizer that belongs to them."""
        library = import_transformers()
        with explained(where):
            self.model.load_state_dict(library.AutoModel.from_pretrained(where).float().state_dict())
        self.tokenizer.copy_(torch.frombuffer(bytearray(describe(where)[1]), dtype=torch.uint8))

    def rows(self, words: Sequence[str]) -> Tensor:
        """The pieces of words."""
        import tokenizers

        try:
            cut = tokenizers.Tokenizer.from_str(bytes(self.tokenizer.cpu().numpy()).decode())
        except Exception as error:  # the library raises nothing more special
            raise BadData(f"the tokenizer of the encoder cannot be read: {one_line(error)}") from None
        cut.no_truncation()
        cut.no_padding()
        whole = cut.encode("a")
        kept = [at for at, special in enumerate(whole.special_tokens_mask) if not special]
        first, last = whole.ids[: kept[0]], whole.ids[kept[-1] + 1 :]
        self.ends = (first[-1] if first else -1, last[0] if last else -1)
        new = [f" {unescape(word)}" for word in words]  # a word begins behind a space
        unknown = whole.ids[kept[0]]
        rows = np.zeros((len(new), PIECES), dtype=np.int32)
        for row, found in zip(rows, cut.encode_batch(new, add_special_tokens=False), strict=True):
            ids = found.ids[:PIECES] or [unknown]
            row[: len(ids)] = [one + 1 for one in ids]  # 0 is the padding
        return torch.from_numpy(rows)

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Hidden states (b, m + 2, d): the beginning, the first piece of each token of states (b, m), and the end."""
        self.meet()
        width = states.shape[1] + 2
        place = torch.arange(width, device=states.device)
        words = torch.nn.functional.pad(states, (1, 1))
        seen = place <= lengths[:, None] + 1
        marks = torch.where(place == 0, -1, torch.where(place == lengths[:, None] + 1, -2, words))
        return windowed(self.read, marks[..., None], seen, WINDOW, MARGIN)

    def read(self, marks: Tensor, seen: Tensor) -> Tensor:
        """The encoder on short texts of word numbers (b, m, 1), -1 and -2 for the two ends."""
        words = marks[..., 0]
        assert self.ends is not None
        pieces = self.table[words.clamp(min=0)].long()  # (b, m, PIECES)
        for number, end in zip((-1, -2), self.ends, strict=True):
            pieces[words == number] = 0
            pieces[..., 0] = torch.where(words == number, end + 1, pieces[..., 0])
        pieces = pieces * seen[..., None]
        sizes = (pieces > 0).sum(2)
        if int(sizes.sum(1).max()) > self.most:  # rare: many long words
            pieces[..., max(self.most // words.shape[1], 1) :] = 0
            sizes = (pieces > 0).sum(2)
        flat = pieces.flatten(1)
        order = (flat == 0).int().argsort(stable=True, dim=1)[:, : max(int(sizes.sum(1).max()), 1)]
        ids = flat.gather(1, order)
        mask = ids > 0
        found = self.model(input_ids=(ids - 1).clamp(min=0), attention_mask=mask.long()).last_hidden_state
        first = (sizes.cumsum(1) - sizes).clamp(max=ids.shape[1] - 1)
        hidden: Tensor = found.gather(1, first[..., None].expand(-1, -1, self.width))
        return hidden
