"""``python -m tests.bench [part ...] [--long]``."""

from __future__ import annotations

import sys

from tests.bench import generation, inference, scaling, startup, text, training, trajectories, update

PARTS = {
    "startup": startup.run,
    "generation": generation.run,
    "trajectories": trajectories.run,
    "training": training.run,
    "update": update.run,
    "inference": inference.run,
    "text": text.run,
    "scaling": scaling.run,
    "sizes": generation.run_sizes,
}

if __name__ == "__main__":
    asked = [word for word in sys.argv[1:] if word != "--long"]
    for name in asked or PARTS:
        PARTS[name]()
    if "--long" in sys.argv:
        trajectories.run_long()
        scaling.run_long()
