"""What every agent shares: how it samples."""

import torch

from trainer.game.play import Draw
from trainer.models.policy import perturbed


def test_curiosity_draws_anything_that_is_possible():
    scores = torch.tensor([0.0, -30.0, -torch.inf, -30.0]).expand(30_000, 4)
    drawn = [perturbed(scores, Draw(torch.Generator().manual_seed(0), share)).argmax(1) for share in (0.0, 0.3)]
    own, curious = (torch.bincount(found, minlength=4) / len(found) for found in drawn)
    assert own.tolist() == [1, 0, 0, 0]
    assert curious[2] == 0 and torch.allclose(curious, torch.tensor([0.8, 0.1, 0.0, 0.1]), atol=0.01)
