"""What depends on the machine."""

import pytest
import torch

from trainer.core import device
from trainer.core.device import Runtime, many_shapes


def test_batches_of_many_sizes_are_computed_in_fp32_without_onednn():
    layer, before = torch.nn.Linear(4, 4), torch.backends.mkldnn.enabled
    with Runtime(torch.device("cpu")).autocast("bf16"):
        assert layer(torch.ones(2, 4)).dtype == torch.bfloat16
        with many_shapes():
            assert layer(torch.ones(2, 4)).dtype == torch.float32 and not torch.backends.mkldnn.enabled
        assert torch.backends.mkldnn.enabled == before


def test_only_bf16_is_computed_in_bf16():
    layer = torch.nn.Linear(4, 4)
    with Runtime(torch.device("cpu")).autocast("fp32"):
        assert layer(torch.ones(2, 4)).dtype == torch.float32


@pytest.mark.parametrize(("computes", "precision"), [(False, "fp32"), (True, "bf16")])
def test_the_best_precision_is_what_the_processor_computes(monkeypatch, computes, precision):
    monkeypatch.setattr(device, "computes_bf16", lambda: computes)
    assert Runtime(torch.device("cpu")).best_precision == precision
