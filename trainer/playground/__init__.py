"""A page on this machine where one types a text and watches an agent edit it.

Imports: core, data, game, agents, pages.
"""
