"""The rules, recurrent inference, accuracies. Imports core and data."""
