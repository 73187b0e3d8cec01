"""The planner as a policy: its networks, how they are called in training, and how it decides in a game.

Axes: b games, m state, n action, v action vocabulary, c classes of places.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from msgspec.structs import replace
from torch import Tensor
from torch.nn import functional

from trainer.core.config import Config
from trainer.core.device import Runtime, many_shapes
from trainer.data.batches import TrainingBatch
from trainer.data.contract import Contract
from trainer.data.demonstrations import Demonstrations
from trainer.game.environment import Splices, splice
from trainer.game.play import Decision, Draw
from trainer.game.replay import check_trajectories
from trainer.models.layers import IMPOSSIBLE
from trainer.models.planner.decoding import NARROW, WIDE, NextEdits, decode_opened, decode_scripts, decode_spans
from trainer.models.planner.drawing import draw_opened, draw_spans
from trainer.models.planner.edit_classes import EditClasses
from trainer.models.planner.knowledge import PlannerKnowledge, study
from trainer.models.planner.networks import GAP_FEATURES, TOKEN_FEATURES, Places, Reader, around, both_ends
from trainer.models.planner.recipe import Part, practised_decay, recipe_for
from trainer.models.planner.sampler import PlannerSampler
from trainer.models.planner.spelling import Spelling
from trainer.models.policy import BETAS, Knowledge, Policy, negative_log_likelihood

QUESTIONS = 1 << 12  # to the token network at once: more would not fit the processor's cache


class Planner(Policy):
    """Plans whole edit scripts, plays the first edit, and plans again."""

    about: ClassVar[str] = "plans whole edit scripts with two small networks; learns in minutes on a CPU"
    streamable: ClassVar[bool] = False
    unread: ClassVar[frozenset[str]] = frozenset(  # its recipe decides
        (
            "width", "layers", "dropout", "init", "teacher_forcing", "teacher_draw", "epoch", "lengths", "batch",
            "last_batch", "optimizer", "learning_rate", "weight_decay", "decay_steps", "restart", "warm_up", "schedule",
            "rate_every", "adaptive", "adaptive_scale", "stream_rows", "encoder",
        )
    )  # fmt: skip
    knowledge_type: ClassVar[type[PlannerKnowledge]] = PlannerKnowledge
    group: ClassVar[int] = 512  # padding is cheap here, and its tables are made once per group

    script_positions: Tensor  # (scripts, edits)
    script_tokens: Tensor  # (scripts, edits), 0 at the end
    written: Tensor  # (tokens) what no source has

    def __init__(self, config: Config, contract: Contract, knowledge: PlannerKnowledge) -> None:
        super().__init__()
        self.knowledge, self.recipe = knowledge, recipe_for(knowledge)
        self.max_state, self.max_steps = contract.max_state, contract.max_steps
        self.slots, self.vocabulary = contract.action_length, len(contract.actions)
        self.beam, self.search = config.beam, NARROW if knowledge.window else WIDE
        self.mask, self.query = len(contract.state_tokens) + 1, len(contract.state_tokens) + 2
        self.edits = EditClasses(contract, knowledge.span)
        spelled = knowledge.tokens == "characters"
        tokens = Spelling(contract.state_tokens, knowledge.own) if spelled else len(contract.state_tokens) + 3
        self.confident = knowledge.view == "opened" and config.confidence
        self.features = GAP_FEATURES + (TOKEN_FEATURES if "operation" in contract.slots else 0)
        if knowledge.view == "scripts":
            self.token = Reader(tokens, 2 * knowledge.reach, len(knowledge.scripts), self.recipe.token)
            self.register_scripts(knowledge)
            return
        self.token = Reader(tokens, 2 * (knowledge.reach + knowledge.window), tokens, self.recipe.token)
        kinds = 2 if self.edits.spans else self.edits.kinds
        told = self.features if self.confident else 0
        self.plan = Places(tokens, knowledge.plan_reach, kinds, self.recipe.plan, told)

    def register_scripts(self, knowledge: PlannerKnowledge) -> None:
        """The scripts as tensors: positions and tokens (scripts, edits), 0 tokens at the end."""
        longest = max(map(len, knowledge.scripts))
        padded = [[*script, *[(0, 0)] * (longest - len(script))] for script in knowledge.scripts]
        table = torch.tensor(padded).view(len(padded), longest, 2)
        written = torch.zeros(self.query + 1, dtype=torch.bool)
        written[list(knowledge.written)] = True
        self.register_buffer("script_positions", table[..., 0], persistent=False)
        self.register_buffer("script_tokens", table[..., 1], persistent=False)
        self.register_buffer("written", written, persistent=False)

    @classmethod
    def study(
        cls, data: Demonstrations, config: Config, known: Knowledge | None = None
    ) -> tuple[Config, PlannerKnowledge]:
        config, _ = super().study(data, config)
        check_trajectories(data.steps, data.contract, data.where)
        # A resumed run goes on with what it knew, also by the rules of an earlier version.
        knowledge = known if isinstance(known, PlannerKnowledge) else study(data.steps, data.contract, config)
        return replace(config, updates=config.updates or recipe_for(knowledge).updates), knowledge

    def sampler(self, data: Demonstrations, config: Config, runtime: Runtime) -> PlannerSampler:
        return PlannerSampler(self, data.steps, config, data.contract, runtime)

    def stage_updates(self, config: Config) -> tuple[int, ...]:
        """How many updates each stage gets: all of the recipe's, or their shares of another total."""
        stages = self.recipe.stages
        shares = [max(round(config.updates * stage.updates / self.recipe.updates), 1) for stage in stages[:-1]]
        return (*shares, max(config.updates - sum(shares), 1))

    def parameter_groups(self, config: Config) -> list[dict[str, Any]]:
        decay = {stage.part: stage.weight_decay for stage in self.recipe.stages}
        return [
            {"params": [*getattr(self, part).parameters()], "weight_decay": decay[part], "betas": BETAS}
            for part in decay
        ]

    @property
    def practised_decay(self) -> float:
        return practised_decay(self.knowledge)

    @property
    def targets(self) -> int:
        return 1

    @property
    def has_unused(self) -> bool:
        return True  # one part learns at a time

    def forward(self, part: Part, states: Tensor, lengths: Tensor, features: Tensor | None = None) -> Tensor:
        """In training: log-probabilities (b, 1, classes) of one part."""
        scores = self.token(states) if part == "token" else self.place_scores(states, lengths, features)
        return scores.float().log_softmax(-1)[:, None]

    def judge(self, scores: Tensor, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """As for any agent; where a state has several right answers, the mean over them, and any of them is right."""
        answers = batch.actions  # (b, k)
        if answers.shape[1] == 1:
            return super().judge(scores, batch)
        real = answers >= 0
        each = negative_log_likelihood(scores.expand(-1, answers.shape[1], -1), answers.clamp(min=0), batch.smoothing)
        losses = each.masked_fill(~real, 0).sum(1, keepdim=True) / real.sum(1, keepdim=True)
        return losses, (scores.argmax(-1) == answers).any(1, keepdim=True)

    def place_scores(self, states: Tensor, lengths: Tensor, features: Tensor | None) -> Tensor:
        """Scores of END and all place classes (b, c); what the environment would refuse is impossible."""
        scores = self.plan(states, lengths, features)
        if self.edits.spans:
            both = scores[:, 1:].view(len(scores), -1, 2)  # (b, p, left and right)
            right = functional.pad(both[..., 1], (0, self.edits.span - 1)).unfold(1, self.edits.span, 1)
            scores = torch.cat((scores[:, :1], (both[..., :1] + right).flatten(1)), 1)
        allowed = self.edits.allowed(lengths, states.shape[1] + 1, self.max_state)
        possible: Tensor = scores.masked_fill(~allowed, -torch.inf)
        return possible

    def plan_chances(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities of the place classes (b, c), for play."""
        features = self.confidence(states, lengths) if self.confident else None
        return self.place_scores(states, lengths, features).float().log_softmax(-1)

    def token_chances(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities of the token network's classes (b, classes), for play."""
        views = self.token_view(states, lengths)
        return torch.cat([self.token(view).float().log_softmax(-1) for view in torch.split(views, QUESTIONS)])

    def token_view(self, states: Tensor, lengths: Tensor) -> Tensor:
        """What the token network sees: both ends, and what stands beside the place that is asked for."""
        ends = both_ends(states, lengths, self.knowledge.reach)
        if not self.knowledge.window:
            return ends
        return torch.cat((ends, around(states, self.query, self.knowledge.window)), 1)

    def spans(self, states: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens (b, span) that edits replace, and how many they are."""
        edits = self.edits.splices(classes, classes)
        place = edits.start[:, None] + torch.arange(self.edits.span, device=states.device)
        inside = place < edits.stop[:, None]
        tokens = states.gather(1, place.clamp(max=states.shape[1] - 1)).masked_fill(~inside, 0)
        return tokens, edits.stop - edits.start

    @torch.no_grad()
    def confidence(self, states: Tensor, lengths: Tensor) -> Tensor:
        """What the token network says of every place, (b, p, f).

        At a gap: the best log-probability of a token inserted there, and the entropy. At a token: the best
        other one, the entropy, and its own.
        """
        places = states.shape[1] + 1
        result = torch.zeros(len(states), places, self.features, device=states.device)
        kinds = [(0, GAP_FEATURES)] + ([(1, TOKEN_FEATURES)] if self.features > GAP_FEATURES else [])
        for removed, features in kinds:
            place = torch.arange(places, device=states.device)
            asked = place < lengths[:, None] + 1 - removed  # (b, p)
            if removed:
                asked[:, :-1] &= states != self.mask
            row, at = asked.nonzero(as_tuple=True)
            for rows, starts in zip(torch.split(row, QUESTIONS), torch.split(at, QUESTIONS), strict=True):
                old = states[rows]
                query = torch.full_like(starts, self.query)
                edits = Splices(starts, starts + removed, query, torch.ones_like(starts, dtype=torch.bool))
                chances = self.token_chances(*splice(old, lengths[rows], edits, places))
                entropy = -(chances.exp() * chances).sum(1)
                if removed:
                    own = old.gather(1, starts[:, None])
                    told = [chances.scatter(1, own, IMPOSSIBLE).amax(1), entropy, chances.gather(1, own)[:, 0]]
                else:
                    told = [chances.amax(1), entropy]
                first = GAP_FEATURES * removed
                result[rows, starts, first : first + features] = torch.stack(told, 1) / 2 + 1
        return result

    @torch.inference_mode()
    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Scores (b, n, v): the chosen tokens have their probability, all others share the rest evenly.

        A choice that is less probable than an even share is given just more than that, so that it wins.
        """
        lengths = lengths.to(states.device)
        decode = {"scripts": decode_scripts, "span": decode_spans, "opened": decode_opened}[self.knowledge.view]
        with many_shapes():
            plan: NextEdits = decode(self, states, lengths)
        actions = self.edits.actions(plan.classes, plan.tokens)  # (b, n)
        chance = plan.chances.exp().clamp(1.001 / self.vocabulary, 1 - 1e-6)  # (b, 2): place, token
        at = [1 if name == "token" else 0 for name in self.edits.slots]
        chance = chance[:, at]  # (b, n)
        rest = ((1 - chance) / (self.vocabulary - 1)).log()
        scores = rest[..., None].expand(-1, -1, self.vocabulary)
        return scores.scatter(2, actions[..., None], chance.log()[..., None])

    @torch.inference_mode()
    def sample(self, states: Tensor, lengths: Tensor, draw: Draw) -> Decision:
        """The first edits of scripts that are drawn from the planner's own probabilities."""
        lengths = lengths.to(states.device)
        draw_edits = {"scripts": decode_scripts, "span": draw_spans, "opened": draw_opened}[self.knowledge.view]
        with many_shapes():
            plan: NextEdits = draw_edits(self, states, lengths, draw)
        return Decision.drawn(self.edits.actions(plan.classes, plan.tokens))
