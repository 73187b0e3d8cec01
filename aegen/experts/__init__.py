"""From pairs to demonstrations: metrics, edit scripts, TG, TA, tags.

Imports: core, columns.
"""
