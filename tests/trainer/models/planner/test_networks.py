import pytest
import torch

from trainer.models.planner.networks import Places, Reader, Shape, around, both_ends, summed_table


def test_both_ends_of_short_and_long_states():
    states = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 0, 0, 0], [0, 0, 0, 0, 0]])
    assert both_ends(states, torch.tensor([5, 2, 0]), 3).tolist() == [
        [1, 2, 3, 3, 4, 5],
        [1, 2, 0, 0, 1, 2],
        [0, 0, 0, 0, 0, 0],
    ]
    assert both_ends(states[1:2, :2], torch.tensor([2]), 3).tolist() == [[1, 2, 0, 0, 1, 2]]


def test_what_stands_beside_a_token():
    states = torch.tensor([[9, 1, 2, 3], [1, 2, 3, 9], [1, 9, 2, 0]])
    assert around(states, 9, 2).tolist() == [[0, 0, 1, 2], [2, 3, 0, 0], [0, 1, 2, 0]]


def test_the_table_is_the_product():
    torch.manual_seed(0)
    embed, layer = torch.nn.Embedding(7, 4), torch.nn.Linear(3 * 4, 5)
    tokens = torch.randint(7, (50, 3))
    plain = layer(embed(tokens).flatten(1))
    assert torch.allclose(summed_table(embed, layer.weight, tokens) + layer.bias, plain, atol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "residual", "normed"])
def test_a_row_does_not_depend_on_the_others(kind):
    torch.manual_seed(0)
    reader = Reader(9, 8, 6, Shape(kind, layers=3, hidden=16, width=8)).eval()
    views = torch.randint(9, (40, 8))  # more rows than tokens: by the table
    assert torch.allclose(reader(views)[:3], reader(views[:3]), atol=1e-5)


def test_places_do_not_depend_on_padding():
    torch.manual_seed(0)
    places = Places(9, 4, 3, Shape("residual", layers=2, hidden=16, embedding=4), features=5).eval()
    states, lengths = torch.randint(1, 9, (6, 5)), torch.tensor([5, 5, 5, 4, 2, 0])
    states = states.masked_fill(torch.arange(5) >= lengths[:, None], 0)
    features = torch.rand(6, 6, 5).masked_fill((torch.arange(6) > lengths[:, None])[..., None], 0)
    narrow = places(states, lengths, features)
    wide = places(torch.nn.functional.pad(states, (0, 3)), lengths, torch.nn.functional.pad(features, (0, 0, 0, 3)))
    assert narrow.shape == (6, 1 + 6 * 3) and torch.allclose(wide[:, : 1 + 6 * 3], narrow, atol=1e-5)
