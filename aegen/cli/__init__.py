"""The command ``aegen``: parse, call one library function, print the result.

Nothing heavy is imported here; each command imports what it needs.

Imports: core, files, engines, arithmetic, pairs, experts, dataset, card, pipeline, pages, publishing.
"""

from aegen.cli import building, inspecting, publishing
from aegen.cli.common import main

__all__ = ["building", "inspecting", "main", "publishing"]
