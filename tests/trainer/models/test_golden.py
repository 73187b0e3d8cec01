"""The paper's agents against numbers of the authors' own classes: same weights, same states, same outputs.

Every file of the folder has the weights of one model at width 16 (``w/NAME``, rows in the order of its token lists),
some states with their actions, and what the authors' class computes: log-probabilities in evaluation mode, and in
training mode without dropout log-probabilities, loss and norm of the gradient, with no gold token read (``_tf0``) and
with all of them (``_tf1``). ``AEGEN_GOLDEN`` names a folder with more of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from trainer.core.config import Config
from trainer.data.contract import Contract
from trainer.models.encoded import Encoded
from trainer.models.policy import negative_log_likelihood
from trainer.models.zoo import build_model

FOLDER = Path(os.environ.get("AEGEN_GOLDEN") or Path(__file__).parent / "golden")
FILES = sorted(FOLDER.glob("*.npz"))
OURS = {  # the beginnings of the authors' names -> ours
    "en_embedding_layer": "encoder.embed",
    "encoder.bi_lstm": "encoder.lstm",
    "encoder.h_linear": "encoder.hidden",
    "encoder.c_linear": "encoder.cell",
    "de_embedding_layer": "embed",
    "decoder.attn.attn": "attention.project",
    "decoder.attn.v": "attention.v",
    "decoder.attn_combine": "combine.project",
    "decoder.lstm": "decoder.lstm",
    "decoder.out": "decoder.output",
    "attn.attn": "attention.project",
    "attn_combine": "combine.project",
    "decoder0": "decoder0.lstm",
    "decoder1": "decoder1.lstm",
    "out_layer0": "decoder0.output",
    "out_layer1": "decoder1.output",
    "proj_layer": "align.project",
}
FLAT = ("linear", "nar")  # models whose "proj_layer" is the whole decoder


class Golden:
    """One file: our model with its weights, and its states and actions as our ids."""

    def __init__(self, path: Path) -> None:
        self.said = np.load(path, allow_pickle=False)
        self.name = path.stem.split("-", 1)[1]
        slots = ("position", "token") if self.said["logp"].shape[1] == 2 else ("left", "right", "token")
        tokens = self.said["action_tokens"].tolist()
        self.contract = Contract(
            config="augmented",
            split="train",
            task="golden",
            tokens="words",
            arithmetic=True,
            spec={},
            metric="levenshtein",
            backend={},
            design="",
            slots=slots,
            state_tokens=tuple(self.said["state_tokens"].tolist()[1:]),  # after PAD
            action_tokens=tuple(sorted(set(tokens) - {"BOS"})),
            writable=(),
            max_state=int(self.said["max_state"]),
            action_length=len(slots),
            max_steps=1,
        )
        # Row i of our action vocabulary is row order[i] of theirs; BOS is our last.
        self.order = [tokens.index(token) for token in (*self.contract.actions, *(["BOS"] if "BOS" in tokens else []))]
        self.actions = torch.tensor(
            [[self.contract.action_ids[token] for token in action.split()] for action in self.said["actions"].tolist()]
        )
        states = [[self.contract.state_ids[token] for token in state.split()] for state in self.said["states"].tolist()]
        self.lengths = torch.tensor([len(state) for state in states])
        self.states = nn.utils.rnn.pad_sequence([torch.tensor(state) for state in states], batch_first=True)

    def model(self, forcing: float = 0.5) -> Encoded:
        """Our class with the authors' weights."""
        config = Config(model=self.name, width=16, dropout=0.0, teacher_forcing=forcing)
        model = build_model(config, self.contract)
        assert isinstance(model, Encoded)
        names = OURS | ({"proj_layer": "flatten.project"} if self.name in FLAT else {})
        theirs = [key.removeprefix("w/") for key in self.said.files if key.startswith("w/")]
        model.load_state_dict(
            {
                names[prefix] + name.removeprefix(prefix): self._rows(name)
                for name in theirs
                for prefix in names
                if name.startswith(f"{prefix}.") or name == prefix
            }
        )
        return model

    def _rows(self, name: str) -> torch.Tensor:
        """The authors' weights, rows of action tokens in the order of our vocabulary."""
        weights = torch.from_numpy(self.said[f"w/{name}"])
        if name.startswith(("de_embedding", "out_layer", "decoder.out")):
            return weights[self.order]
        if name.startswith("proj_layer") and self.name in FLAT:
            slots = self.contract.action_length
            return weights.view(slots, len(self.order), *weights.shape[1:])[:, self.order].flatten(0, 1)
        return weights

    def scores(self, key: str) -> torch.Tensor:
        """The authors' log-probabilities in the order of our vocabulary."""
        return torch.from_numpy(self.said[key])[..., self.order]


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.param)


def test_there_are_golden_numbers_for_every_agent_of_the_paper() -> None:
    assert {path.stem.split("-", 1)[1] for path in FILES} >= {"ar", "ar-star", "nar", "nar-star", "decoder0"}


def test_log_probabilities_are_the_authors(golden: Golden) -> None:
    with torch.inference_mode():
        found = golden.model().eval()(golden.states, golden.lengths)
    torch.testing.assert_close(found, golden.scores("logp"), atol=1e-5, rtol=0)


@pytest.mark.parametrize("forcing", [0, 1])
def test_loss_and_gradient_are_the_authors(golden: Golden, forcing: int) -> None:
    model = golden.model(forcing=float(forcing)).train()
    scores = model(golden.states, golden.lengths, golden.actions)
    loss = negative_log_likelihood(scores, golden.actions).mean()
    loss.backward()
    norm = nn.utils.get_total_norm([weight.grad for weight in model.parameters() if weight.grad is not None])
    torch.testing.assert_close(scores.detach(), golden.scores(f"logp_tf{forcing}"), atol=1e-5, rtol=0)
    assert loss.item() == pytest.approx(float(golden.said[f"loss_tf{forcing}"]), rel=1e-5)
    assert norm.item() == pytest.approx(float(golden.said[f"gradnorm_tf{forcing}"]), rel=1e-5)
