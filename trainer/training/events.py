"""TensorBoard events of a run."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from trainer.core.errors import MissingExtra


class Events:
    """Writes the numbers of every epoch; without a folder, nothing."""

    def __init__(self, folder: Path | None, first_epoch: int) -> None:
        self.writer: Any = None
        if folder:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise MissingExtra("tensorboard") from error
            # Epochs that a resumed run repeats replace the earlier ones.
            self.writer = SummaryWriter(str(folder), purge_step=first_epoch or None)

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.writer:
            self.writer.close()

    def add(self, record: dict[str, Any]) -> None:
        """The numbers of one epoch."""
        if not self.writer:
            return
        groups = {"train": record, "validation": record.get("validation", {})}
        for group, values in groups.items():
            for name, value in values.items():
                if isinstance(value, int | float) and name != "epoch":
                    self.writer.add_scalar(f"{group}/{name}", value, record["epoch"])
