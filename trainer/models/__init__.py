"""The agents: the paper's, and our own.

Imports: core, data, game.
"""
