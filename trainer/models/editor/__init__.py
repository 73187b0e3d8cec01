"""The editor: an agent for text of any words and any length.

For every place of a state it says whether to edit there and how; a second head says what to write. Both read one
encoder, a small Transformer over hashed pieces of words or a pretrained one. It learns from all edits that are left to
the end of a trajectory at once, and plays them one by one, the most certain first, or several a round.

Beside it is its baseline with the same encoder, the tagger.
"""
