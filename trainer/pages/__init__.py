"""What pages for a browser share: their look, and the stepper, which shows a game move by move.

Imports: core, game.
"""
