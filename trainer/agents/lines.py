"""Edit any number of texts with flat memory: a few at a time, in their order; what cannot be read stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from trainer.agents.agent import Agent, Game
from trainer.core.errors import InvalidText
from trainer.data.m2 import Edit, Words, write_m2
from trainer.scoring.maxmatch import edits_between

BATCH = 1024  # texts that are edited at once
TOKENS = 1 << 22  # that are edited at once, if all texts were as long as the longest may become
EMPTY = "empty"  # how the game of an empty text ends
MAX_LINE = 1 << 24  # bytes of one line that is read; what is longer is passed on in pieces


@dataclass(frozen=True)
class Edited:
    """A text after the agent had it; ``problem`` says why it is unchanged."""

    source: str
    text: str
    game: Game | None = None
    problem: str = ""

    def refused(self, problem: str) -> Edited:
        """The same text, unchanged."""
        return Edited(self.source, self.source, problem=problem)

    @property
    def on_one_line(self) -> Edited:
        """Itself, if the result of one line is one line."""
        return self if "\n" not in self.text else self.refused("the result has a line break")

    @property
    def as_m2(self) -> Edited:
        """Itself, if M2 can say what was written."""
        written = (word for edit in self.edits for words in edit.corrections for word in words)
        return self.refused("M2 cannot say that || is written") if any("||" in word for word in written) else self

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What was changed, word by word."""
        return edits_between(*self._words())

    def _words(self) -> tuple[Words, Words]:
        source, output = (tuple(text.split(" ")) if text else () for text in (self.source, self.text))
        return source, output

    def to_m2(self) -> str:
        """The edits in the M2 format of grammatical error correction."""
        return write_m2(self._words()[0], self.edits)


def edit_all(
    agent: Agent, texts: Iterable[str], batch: int = BATCH, moves: bool = True, edits_per_round: int = 1
) -> Iterator[Edited]:
    """All texts, edited, in their order; without ``moves`` nobody writes down how. An empty text stays empty."""
    for portion in _portions(agent, texts, batch):
        readable = [text for text, problem in portion if text and not problem]
        games = iter(agent.play(readable, moves, edits_per_round))
        for text, problem in portion:
            if problem:
                yield Edited(text, text, problem=problem)
            elif not text:
                yield Edited(text, text, Game(text, text, (), EMPTY))
            else:
                game = next(games)
                yield Edited(text, game.text, game)


def _portions(agent: Agent, texts: Iterable[str], batch: int) -> Iterator[list[tuple[str, str]]]:
    """Texts that are edited at once, each with what is wrong with it."""
    portion: list[tuple[str, str]] = []
    longest = agent.contract.max_state
    for text in texts:
        try:
            size, problem = len(agent.read(text)), ""
        except InvalidText as error:
            size, problem = 0, str(error)
        if portion and max(longest, size) * (len(portion) + 1) > TOKENS:
            yield portion
            portion, longest = [], agent.contract.max_state
        longest = max(longest, size)
        portion.append((text, problem))
        if len(portion) == batch:
            yield portion
            portion, longest = [], agent.contract.max_state
    if portion:
        yield portion


def read_lines(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    r"""Lines and how they end; bytes that are not UTF-8 are kept as lone surrogates, which no agent reads.

    >>> import io
    >>> list(read_lines(io.BytesIO(b"a b\r\n\nc")))
    [('a b', '\r\n'), ('', '\n'), ('c', '')]
    """
    while raw := stream.readline(MAX_LINE):
        ending = "\r\n" if raw.endswith(b"\r\n") else "\n" if raw.endswith(b"\n") else ""
        yield raw[: len(raw) - len(ending)].decode(errors="surrogateescape"), ending


def to_bytes(text: str) -> bytes:
    """A text as it was read."""
    return text.encode(errors="surrogateescape")
