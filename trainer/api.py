"""The public functions: what ``import trainer`` offers and the command ``trainer fit`` calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.agents.agent import Agent
from trainer.core.config import Config
from trainer.core.errors import InvalidConfig
from trainer.core.progress import Reporter
from trainer.training.fit import Result, train_run
from trainer.training.practise import Request, practise_run
from trainer.training.requested import is_text, requested_config, takes_editor, why_this_model


@dataclass(frozen=True)
class Run(Result):
    """A trained run: its folder, what it achieved, and its agent."""

    def agent(self, device: str = "cpu") -> Agent:
        """The agent of the best checkpoint."""
        return load(self.folder, device)


def fit(
    data: str | Path,
    *,
    out: str | Path,
    model: str | None = None,
    preset: str | None = None,
    config: Config | None = None,
    resume: bool = False,
    device: str = "auto",
    compiled: bool = False,
    save_every: int = 1000,
    reporter: Reporter | None = None,
    **settings: Any,
) -> Run:
    """Train an agent on ``data`` (a dataset folder, a hub id, or a URL) into the folder ``out``.

    ``model`` is a name of the zoo, ``preset`` a named set of settings, and every field of :class:`Config` is a keyword;
    one that the model does not read is refused. Without a model and a preset, text is learned by the editor. Without a
    preset the device decides: on a GPU ``paper``, with NAR* unless told otherwise, else ``fast`` for the planner and
    ``cpu`` for other models. A whole ``config`` replaces all of these. With ``resume`` an interrupted run continues and
    ends with the same weights as an uninterrupted one.

    >>> run = fit("aes", model="nar-star", width=16, updates=20, out="runs/nar")
    >>> run.updates, run.finished
    (20, 'updates')
    >>> fit("aes", model="nar-star", width=16, updates=20, out="runs/nar", resume=True).best == run.best
    True
    """
    if model is not None:
        settings["model"] = model
    why = ""
    if config is None:
        text = takes_editor(preset, settings, text=True) and is_text(data)
        why = why_this_model(preset, settings, device, text)
        config = requested_config(preset, settings, device, text)
    elif settings or preset:
        raise InvalidConfig(f"config: cannot be combined with {', '.join(['preset'] if preset else settings)}")
    result = train_run(
        data,
        config,
        out,
        resume=resume,
        device=device,
        compiled=compiled,
        save_every=save_every,
        reporter=reporter,
        why=why,
    )
    return Run(**vars(result))


def practise(
    run: str | Path,
    *,
    out: str | Path,
    resume: bool = False,
    device: str = "auto",
    save_every: int = 1000,
    reporter: Reporter | None = None,
    **settings: Any,
) -> Run:
    """Let the agent of ``run`` practise, into the folder ``out``: play, keep what wins, learn from it, again.

    ``run`` is a run folder, a published folder, or a hub id (``org/name``).
    Settings are the fields of :class:`trainer.training.practise.Request`: ``sources``, ``data``, ``rounds``,
    ``samples``, ``updates``, ``corrections`` and ``seed``.

    >>> start = fit("aes", model="planner", updates=20, out="runs/start")
    >>> practise("runs/start", out="runs/practised", rounds=2, samples=2, updates=5).updates
    10
    """
    request = Request(**settings)
    result = practise_run(run, out, request, resume=resume, device=device, save_every=save_every, reporter=reporter)
    return Run(**vars(result))


def load(where: str | Path, device: str = "cpu") -> Agent:
    """Load the agent of a run folder, of a published folder, or of a hub id (``org/name``).

    >>> run = fit("aes", model="planner", updates=2, out="runs/planner")
    >>> load("runs/planner").description.config.model
    'planner'
    """
    return Agent.from_pretrained(where, device)
