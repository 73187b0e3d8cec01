"""The optimizer: AdamW, and Muon for the matrices that a model's groups of parameters mark as ``orthogonal``.

Muon (Jordan et al., 2024) replaces the momentum of a matrix by the nearest one whose singular values are all about 1,
so that rare directions are learned as fast as frequent ones. It is scaled as large as an update of AdamW usually is
(Liu et al., 2025), so that both share one learning rate and one weight decay. PyTorch has one since 2.9, which takes
matrices one by one: twice the time where they are as small as here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from trainer.core.device import computes_bf16

MOMENTUM = 0.95
STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the polynomial that pulls singular values towards 1
USUAL = 0.2  # root mean square of AdamW's updates


class Optimizer(torch.optim.AdamW):
    """AdamW for most parameters; in a group with ``orthogonal`` Muon.

    Its state of a parameter is ``step``, ``exp_avg`` and ``exp_avg_sq``, for Muon ``momentum`` alone.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], learning_rate: float) -> None:
        super().__init__(groups, lr=learning_rate, fused=True)

    def moments(self, parameter: Tensor) -> set[str]:
        """The names of what it keeps of a parameter."""
        orthogonal = any(parameter is one for group in self._orthogonal_groups() for one in group["params"])
        return {"momentum"} if orthogonal else {"step", "exp_avg", "exp_avg_sq"}

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        for group in self._orthogonal_groups():
            shapes = defaultdict[torch.Size, list[Tensor]](list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes[parameter.shape].append(parameter)
            for alike in shapes.values():
                self._move(alike, group["lr"], group["weight_decay"])
        super().step(closure)

    def _orthogonal_groups(self) -> list[dict[str, Any]]:
        return [group for group in self.param_groups if group.get("orthogonal")]

    def _move(self, matrices: list[Tensor], rate: float, decay: float) -> None:
        """Update matrices of one shape, and take their gradients: AdamW leaves alone what has none."""
        directions = []
        for matrix in matrices:
            assert matrix.grad is not None
            momentum = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
            momentum.lerp_(matrix.grad, 1 - MOMENTUM)
            directions.append(matrix.grad.lerp(momentum, MOMENTUM))
            matrix.grad = None
        scale = USUAL * math.sqrt(max(matrices[0].shape))
        for matrix, found in zip(matrices, orthogonalised(torch.stack(directions)), strict=True):
            matrix.mul_(1 - rate * decay).sub_(found.to(matrix.dtype), alpha=rate * scale)


def orthogonalised(matrices: Tensor) -> Tensor:
    """Matrices (k, rows, columns) with the same singular vectors, and singular values between about 0.7 and 1.2.

    >>> found = orthogonalised(torch.diag(torch.tensor([5.0, 0.1]))[None])
    >>> bool(found[0].diagonal().sub(1).abs().max() < 0.35)
    True
    """
    if matrices.shape[1] > matrices.shape[2]:
        return orthogonalised(matrices.mT).mT
    fast = matrices.is_cuda or computes_bf16()
    found: Tensor = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    found = found.to(torch.bfloat16 if fast else torch.float32)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found
