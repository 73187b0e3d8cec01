"""Trained agents at work: load one, edit texts with it, measure it.

Imports: core, data, game, scoring, models, training.
"""
