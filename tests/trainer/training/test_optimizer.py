"""The optimizer: AdamW where nothing is marked, orthogonal updates of the matrices that are."""

import pytest
import torch

from tests.trainer.reference import small_dataset
from trainer.core.device import computes_bf16
from trainer.data.dataset import Dataset
from trainer.models.editor.corrector import Corrector
from trainer.models.encoded import Encoded
from trainer.models.paper import Ar
from trainer.models.zoo import MODELS, build_model, open_demonstrations
from trainer.training.optimizer import USUAL, Optimizer, orthogonalised
from trainer.training.presets import preset

CLOSE = 0.02 if computes_bf16() else 1e-4


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 4, 32), (2, 32, 4)])
def test_singular_values_become_one_and_singular_vectors_stay(shape):
    given = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    found = orthogonalised(given).float()
    values = torch.linalg.svdvals(found)
    assert float(values.min()) > 0.5 and float(values.max()) < 1.3
    u, _, v = torch.linalg.svd(given, full_matrices=False)
    inner = u.mT @ found @ v.mT  # diagonal, if the singular vectors are the same
    assert torch.allclose(inner, torch.diag_embed(inner.diagonal(dim1=1, dim2=2)), atol=CLOSE)


def test_what_is_not_marked_is_updated_by_adamw():
    one, two = (torch.nn.Parameter(torch.ones(4, 3)) for _ in range(2))
    ours = Optimizer([{"params": [one], "weight_decay": 0.1}], 0.01)
    plain = torch.optim.AdamW([two], lr=0.01, weight_decay=0.1, fused=True)
    for seed in range(5):
        gradient = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
        for parameter, optimizer in ((one, ours), (two, plain)):
            parameter.grad = gradient.clone()
            optimizer.step()
    assert torch.equal(one, two) and ours.moments(one) == set(plain.state[two])


def test_a_marked_matrix_moves_as_far_as_adamw_would_whatever_its_gradient():
    start = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    for size in (1e-4, 1.0, 1e4):
        matrix, rest = torch.nn.Parameter(start.clone()), torch.nn.Parameter(torch.ones(2))
        groups = [
            {"params": [rest], "weight_decay": 0.0},
            {"params": [matrix], "orthogonal": True, "weight_decay": 0.5},
        ]
        optimizer = Optimizer(groups, 0.01)
        matrix.grad = size * torch.randn(64, 32, generator=torch.Generator().manual_seed(1))
        optimizer.step()
        moved = matrix.detach() - start * (1 - 0.01 * 0.5)
        assert float(moved.square().mean().sqrt()) == pytest.approx(0.01 * USUAL, rel=0.2)
        assert set(optimizer.state[matrix]) == optimizer.moments(matrix) == {"momentum"}
        assert torch.equal(rest, torch.ones(2)) and rest not in optimizer.state  # it had no gradient


@pytest.mark.parametrize(
    "model", [name for name, kind in MODELS.items() if issubclass(kind, Encoded) and kind.game == "edits"]
)
@pytest.mark.parametrize("wide", ["outputs", "places"])
def test_agents_of_the_paper_mark_hidden_layers_alone(model, wide, tmp_path):
    data = Dataset(small_dataset(tmp_path / "data", "edit"))
    contract = open_demonstrations(data, preset("core-hours", model="nar-star", train_on="expert")).contract
    # As wide as there are outputs, or places: an output layer is one whatever its size.
    width = len(contract.actions) + MODELS[model].has_input if wide == "outputs" else contract.max_state
    config = preset("core-hours", model=model, width=width + width % 2, train_on="expert")
    built = build_model(config, contract)
    rest, hidden = built.parameter_groups(config)
    names = {id(parameter): name for name, parameter in built.named_parameters()}
    marked = {names[id(parameter)] for parameter in hidden["params"]}
    assert marked | {names[id(parameter)] for parameter in rest["params"]} == set(names.values())
    assert len(hidden["params"]) + len(rest["params"]) == len(names)
    assert {name for name in marked if "lstm" in name} == {name for name in names.values() if "lstm.weight" in name}
    assert not any(word in name for name in marked for word in ("embed", "output", "flatten", "align", "bias"))
    assert any("attention" in name for name in marked) == issubclass(MODELS[model], Ar)


@pytest.mark.parametrize("model", [name for name, kind in MODELS.items() if issubclass(kind, Corrector)])
def test_agents_for_text_mark_the_layers_of_their_encoder(model, tmp_path):
    config = preset("cpu", model=model, width=32, layers=2, optimizer="muon")
    data = open_demonstrations(Dataset(small_dataset(tmp_path / "data", "edit")), config)
    config, knowledge = MODELS[model].study(data, config)
    built = build_model(config, data.contract, knowledge)
    rest, hidden = built.parameter_groups(config)
    assert [tuple(one.shape) for one in hidden["params"]] == 2 * [(96, 32), (32, 32), (128, 32), (32, 128)]
    assert len(hidden["params"]) + len(rest["params"]) == len([*built.parameters()])
