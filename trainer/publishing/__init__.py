"""Publish a trained agent.

Imports: core, data, models, training.
"""
