import torch
from torch.nn import functional

from tests.trainer.game.test_environment import contract
from trainer.data.contract import OpenContract
from trainer.models.editor.reading.encoder import SHORT, SmallEncoder, attended, windowed
from trainer.models.editor.reading.phrases import Phrases


def encoder():
    torch.manual_seed(0)
    return SmallEncoder(contract("edit", OpenContract), 16, 1, 0.0).eval()


@torch.inference_mode()
def test_padding_and_company_change_nothing():
    model = encoder()
    sizes = torch.tensor([3, 0, 4])
    states = torch.tensor([[1, 2, 3, 0], [0, 0, 0, 0], [4, 3, 2, 1]])
    together = model(states, sizes)
    for row, size in enumerate(sizes.tolist()):
        alone = model(states[row : row + 1, : max(size, 1)], sizes[row : row + 1])
        torch.testing.assert_close(together[row, : size + 2], alone[0, : size + 2])


def test_the_attention_of_short_texts_is_pytorchs_own():
    assert SHORT >= 9
    torch.manual_seed(0)
    parts = [torch.randn(3, 2, 9, 4, requires_grad=True) for _ in range(3)]
    seen = (torch.arange(9) < torch.tensor([9, 4, 1])[:, None])[:, None, None]
    ours = attended(*parts, seen)
    theirs = functional.scaled_dot_product_attention(*parts, seen)
    torch.testing.assert_close(ours, theirs)
    weights = torch.randn_like(ours)
    for one, two in zip(*(torch.autograd.grad((out * weights).sum(), parts) for out in (ours, theirs)), strict=True):
        torch.testing.assert_close(one, two)


def test_windows_see_their_margins_and_no_more():
    b, m, window, margin = 2, 37, 16, 4
    x = torch.randn(b, m, 3)
    seen = torch.arange(m) < torch.tensor([37, 9])[:, None]
    asked = []

    def read(part, mask):
        asked.append(len(part))
        assert mask.any(1).all() and part.shape[1] == window
        return (part * mask[..., None]).sum(1, keepdim=True).expand_as(part)

    found = windowed(read, x, seen, window, margin)
    stride = window - 2 * margin
    assert found.shape == x.shape and sum(asked) == 5 + 2  # windows behind a text's end are not read
    padded = functional.pad(x * seen[..., None], (0, 0, margin, window))
    for row, place in ((0, 0), (0, 20), (0, 36), (1, 3)):
        first = place // stride * stride
        torch.testing.assert_close(found[row, place], padded[row, first : first + window].sum(0))
    assert not found[1, 16:].any()


@torch.inference_mode()
def test_new_words_are_met_once_and_differ():
    model = encoder()
    words = model.embed.contract
    ids = torch.tensor([[words.word_id("running"), words.word_id("jumping"), words.word_id("running")]])
    embedded = model.embed(ids)[0]
    assert len(model.embed.table) == len(words.names)
    assert torch.equal(embedded[0], embedded[2]) and not torch.allclose(embedded[0], embedded[1])


@torch.inference_mode()
def test_words_that_are_forgotten_leave_no_rows_behind(monkeypatch):
    monkeypatch.setattr("trainer.data.contract.MOST_WORDS", 2)
    model = encoder()
    words = model.embed.contract

    def read(*texts):
        return model.embed(torch.tensor([[words.word_id(text) for text in texts]]))[0]

    running, known = read("running", words.state_tokens[0])
    words.forget()
    assert len(words.names) == words.own + 1  # few are kept
    read("jumping", "reading")
    words.forget()
    assert len(words.names) == words.own and "running" not in words.state_ids
    *_, again, same = read("writing", "swimming", "running", words.state_tokens[0])
    assert torch.equal(again, running) and torch.equal(same, known) and len(model.embed.table) == words.own + 3


@torch.inference_mode()
def test_phrases_know_their_own_words_and_no_others():
    model = Phrases(contract("edit", OpenContract), 16, 0.3).eval()
    assert not any(found.any() for found in model(torch.tensor([[1, 2]]), torch.tensor([2])))  # before training
    torch.nn.init.normal_(model.weight)
    sizes = torch.tensor([3, 0, 4])
    states = torch.tensor([[1, 2, 3, 0], [0, 0, 0, 0], [1, 2, 3, 4]])
    gaps, tokens = model(states, sizes)
    for row, size in enumerate(sizes.tolist()):
        alone = model(states[row : row + 1, : max(size, 1)], sizes[row : row + 1])
        torch.testing.assert_close(gaps[row, : size + 1], alone[0][0, : size + 1])
        torch.testing.assert_close(tokens[row, :size], alone[1][0, :size])
    # The third token of the first row has the end behind it, that of the last another token.
    same = (tokens[0] == tokens[2]).all(1).tolist(), (gaps[0] == gaps[2]).all(1).tolist()
    assert same == ([True, True, False, False], [True, True, False, False, False])
    assert not torch.equal(model.train()(states, sizes)[0], gaps)  # some are dropped
