"""How fast agents edit text on one core: words by characters, and sentences with ``trainer edit``.

The words are misspellings of codespell's dictionary. The sentences are 1,000 of W&I+LOCNESS, which cannot be part of
this project: ``AEGEN_TEXT`` is the folder that holds ``wi.train.m2``. Agents are trained for a moment only, so that
they stop where there is nothing to edit; what they get right says nothing of what they can learn. Counted is the time
of one core, which other work on the machine does not lengthen.
"""

from __future__ import annotations

import os
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch

from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.pairs.importing import Import
from aegen.pipeline import build as pipeline
from trainer.agents.agent import Agent
from trainer.agents.lines import edit_all
from trainer.api import fit
from trainer.core.progress import Reporter
from trainer.data.dataset import Dataset
from trainer.data.m2 import read_m2

PAIRS, UPDATES = 6_000, 300  # of words, and to learn them
SENTENCES, LEARNED, SENTENCE_UPDATES = 1_000, 4_000, 100


def demonstrated(wanted: Import, folder: Path) -> Path:
    """Imported pairs with TG and TA."""
    there = Folder(folder)
    pipeline.import_pairs(wanted, there)
    pipeline.add_demonstrations(there, pipeline.demonstrator("text"), Local())
    pipeline.add_augmented(there, Augmentation.of("text"), Local())
    return folder


def spelling(folder: Path) -> Path:
    """Some misspellings by characters; no correction is in two splits."""
    import codespell_lib

    lines = (Path(codespell_lib.__file__).parent / "data" / "dictionary.txt").read_text(encoding="utf-8").splitlines()
    step = len(lines) // PAIRS
    pairs = (line.partition("->") for line in lines[::step][:PAIRS])
    words = tuple((wrong, right.partition(",")[0]) for wrong, _, right in pairs)
    return demonstrated(Import(pairs=words, tokens="chars", ratio="90/5/5", split_by="target"), folder)


def sentences(folder: Path, texts: Path) -> tuple[Path, list[str]]:
    """Demonstrations of W&I, and some of its sentences."""
    blocks = (texts / "wi.train.m2").read_text(encoding="utf-8").split("\n\n")
    some = folder.with_suffix(".m2")
    some.write_text("\n\n".join(blocks[:LEARNED]), encoding="utf-8")
    data = demonstrated(Import((some,), ratio="98/2/0"), folder)
    return data, [" ".join(one.source) for one in islice(read_m2(some), SENTENCES)]


def a_second(run: Path, texts: list[str]) -> float:
    """Texts that an agent edits in a second of one core."""
    agent = Agent.from_pretrained(run)
    since = time.process_time()
    edited = sum(1 for _ in edit_all(agent, texts, moves=False))
    return edited / (time.process_time() - since)


def run() -> None:
    print("text on one core: what agents edit in a second, after a moment of training")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    quiet = Reporter(quiet=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        data = spelling(root / "words")
        dataset = Dataset(data)
        table = dataset.read_all(dataset.select("pairs", "test"), {"source": "string"})
        words = [text.replace(" ", "") for text in table["source"].to_pylist() if "\\" not in text]
        for model in ("planner", "editor"):
            fit(data, out=root / f"words-{model}", model=model, updates=UPDATES, device="cpu", reporter=quiet)
            speed = a_second(root / f"words-{model}", words)
            print(f"  spelling by characters, {model:<8} {speed:8,.0f} words", flush=True)
        if "AEGEN_TEXT" not in os.environ:
            print("  sentences: set AEGEN_TEXT to the folder of wi.train.m2")
        else:
            data, lines = sentences(root / "sentences", Path(os.environ["AEGEN_TEXT"]))
            out = root / "sentences-editor"
            fit(data, out=out, model="editor", updates=SENTENCE_UPDATES, device="cpu", reporter=quiet)
            print(f"  trainer edit, {len(lines):,} sentences     {a_second(out, lines):8,.0f} sentences", flush=True)
    torch.set_num_threads(threads)
