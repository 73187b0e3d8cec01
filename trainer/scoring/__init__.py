"""Edits of text against those of annotators: MaxMatch, and where the annotators' edits come from.

Imports: core, data.
"""
