"""Grids of runs, several at once.

Imports: core, data, models, training, agents.
"""
