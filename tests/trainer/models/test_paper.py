from itertools import combinations

import pytest
import torch

from tests.trainer.reference import write_dataset
from trainer.core.errors import InvalidConfig
from trainer.data.dataset import Dataset
from trainer.models.policy import negative_log_likelihood
from trainer.models.zoo import MODELS, build_model, count_parameters, find_model, open_demonstrations
from trainer.training.presets import preset

SMALL = {"width": 16, "layers": 0}
AGENTS = [name for name, kind in MODELS.items() if kind.game == "edits" and kind.streamable]
DISTINCT = [name for name in AGENTS if "recurrence" not in name]  # those are AR, trained otherwise


def opened(folder):
    dataset = Dataset(folder)
    demonstrations = open_demonstrations(dataset, preset("cpu"))
    return demonstrations.contract, demonstrations.steps


def build(name, contract, **changes):
    torch.manual_seed(0)
    return build_model(preset("cpu", model=name, **(SMALL | changes)), contract)


def test_every_name_builds_its_own_class():
    assert len(set(MODELS.values())) == len(MODELS)
    assert all(find_model(name) is kind for name, kind in MODELS.items())
    with pytest.raises(InvalidConfig, match="unknown model 'transformer'; models: ar, ar-star"):
        find_model("transformer")


def test_no_two_models_have_the_same_forward(datasets):
    contract, steps = opened(datasets["edit"])
    batch = steps.batch(torch.arange(8))
    scores = {
        name: build(name, contract).eval()(batch.states, batch.lengths)[..., : len(contract.actions)]
        for name in DISTINCT
    }
    for one, two in combinations(DISTINCT, 2):
        assert not torch.allclose(scores[one], scores[two]), (one, two)


@pytest.mark.parametrize("design", ["insert", "edit", "span"])
@pytest.mark.parametrize("name", AGENTS)
def test_scores_do_not_depend_on_padding_or_on_the_other_rows(datasets, name, design):
    contract, steps = opened(datasets[design])
    model = build(name, contract).eval()
    batch = steps.batch(torch.arange(32))
    with torch.inference_mode():
        together = model(batch.states, batch.lengths)
        assert together.shape[:2] == (32, contract.action_length)
        for row in (0, 9, 31):
            length = int(batch.lengths[row])
            alone = model(batch.states[row : row + 1, :length], batch.lengths[row : row + 1])
            assert torch.allclose(alone[0], together[row], atol=1e-5)
        wide = torch.nn.functional.pad(batch.states, (0, contract.max_state - batch.states.shape[1]))
        assert torch.allclose(model(wide, batch.lengths), together, atol=1e-5)


@pytest.mark.parametrize("name", AGENTS)
def test_an_empty_state_has_scores(tmp_path, name):
    pairs = {"train": [((), ("a",)), (("a",), ())]}
    contract, steps = opened(write_dataset(tmp_path, "edit", pairs, arithmetic=False))
    batch = steps.batch(steps.taken)
    assert torch.isfinite(build(name, contract)(batch.states, batch.lengths, batch.actions)).all()


@pytest.mark.parametrize("name", AGENTS)
def test_every_parameter_that_has_a_reader_learns(datasets, name):
    contract, steps = opened(datasets["edit"])
    model = build(name, contract)
    batch = steps.batch(torch.arange(32))
    model(batch.states, batch.lengths, batch.actions).gather(-1, batch.actions[..., None]).sum().backward()
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    unread = {"encoder.hidden.weight", "encoder.hidden.bias", "encoder.cell.weight", "encoder.cell.bias"}
    assert idle == (set() if model.uses_final_state else unread)


def test_teacher_forcing_reads_the_gold_tokens(datasets):
    contract, steps = opened(datasets["span"])
    batch = steps.batch(torch.arange(16))
    other = (batch.actions + 1) % len(contract.actions)
    for name in ("ar", "nar-star", "shared-d2"):
        for rate, same in ((0.0, True), (1.0, False)):
            model = build(name, contract, teacher_forcing=rate, dropout=0.0)
            scores = model(batch.states, batch.lengths, batch.actions)
            assert torch.equal(scores, model(batch.states, batch.lengths, other)) is same
        assert torch.equal(model.eval()(batch.states, batch.lengths, batch.actions), model(batch.states, batch.lengths))


def test_the_released_initialisation_zeroes_the_attention_vector(datasets):
    contract, _ = opened(datasets["edit"])
    released = dict(build("ar", contract, init="released").named_parameters())
    assert not released["attention.v"].any() and not released["decoder.lstm.bias_ih_l0"].any()
    assert 0 < released["decoder.lstm.weight_hh_l0"].abs().mean() < 0.02
    assert build("ar", contract).attention.v.any()


@pytest.mark.released
def test_parameters_on_the_released_data(released, tmp_path):
    files = [(released / "aor" / f"train_{side}.txt").read_text().replace("==", "=").splitlines() for side in "xy"]
    pairs = [(tuple(x.split()), tuple(y.split())) for x, y in zip(*files, strict=True)]
    # The longest trajectories and all tokens are in the first thousand; the rest changes no count.
    contract, _ = opened(write_dataset(tmp_path, "insert", {"train": pairs[:1000]}, task="aor"))
    assert (contract.max_state, contract.action_length, len(contract.state_tokens) + 1) == (10, 2, 16)
    assert {name: count_parameters(preset("paper", model=name), contract) for name in DISTINCT} == {
        "ar": 5_542_418,
        "ar-star": 11_846_162,
        "nar": 12_790_818,
        "nar-star": 13_184_580,
        "linear": 8_588_322,
        "decoder0": 11_064_369,
        "shared-d2": 11_074_098,
    }


def test_counting_takes_no_memory(datasets):
    contract, _ = opened(datasets["edit"])
    assert count_parameters(preset("paper", model="ar", width=1 << 14), contract) > 4_000_000_000


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", ["ar-star", "nar", "nar-star"])
def test_updates_of_one_length_are_those_of_the_packed_way(datasets, name, fused):
    """Nothing is packed where all states have one length; one more column of padding packs them again."""
    contract, steps = opened(datasets["span"])
    lengths = steps.lengths[steps.state_of]
    chosen = (lengths == lengths.mode().values).nonzero()[:32, 0]
    batch = steps.batch(chosen)
    assert int(batch.lengths.min()) == batch.states.shape[1] < contract.max_state
    trained = []
    for padding in (0, 1):
        model = build(name, contract, dropout=0.0, teacher_forcing=1.0)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused and not padding)
        for _ in range(3):
            states = torch.nn.functional.pad(batch.states, (0, padding))
            scores = model(states, batch.lengths, batch.actions)
            optimizer.zero_grad()
            negative_log_likelihood(scores, batch.actions).mean().backward()
            optimizer.step()
        trained.append((scores.detach(), dict(model.named_parameters())))
    (one, ours), (two, plain) = trained
    torch.testing.assert_close(one, two, atol=1e-4, rtol=0)
    for key, weight in ours.items():
        torch.testing.assert_close(weight, plain[key], atol=2e-4, rtol=0, msg=key)
