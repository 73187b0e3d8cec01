"""What everybody uses: types, errors, edits, actions, the environment, the format.

Imports: nothing.
"""
