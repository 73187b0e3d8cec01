"""The rules, recurrent inference, accuracies.

Imports: core, data.
"""
