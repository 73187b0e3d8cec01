"""From finished cells to a report: tables beside the paper's, figures, games to step through.

Imports: core, data, models, game, training, agents, sweeps, pages.
"""
