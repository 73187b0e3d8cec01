"""From a dataset and a config to a run.

Imports: core, data, game, scoring, models.
"""
