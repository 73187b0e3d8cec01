"""``python -m trainer`` is the command ``trainer``."""

from trainer.cli import main

main(prog_name="trainer")
