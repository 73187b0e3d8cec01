"""Which places may be named: folders, hub ids and storages, without a secret in their names."""

from __future__ import annotations

import re

from trainer.core.errors import BadData
from trainer.data.hub import hub_id

LOCAL = ("file", "local")
# fsspec knows more, among them some that open what a file tells them to, or show what the environment holds.
SCHEMES = (*LOCAL, "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory", "http", "https", "hf")


def check_url(where: str) -> None:
    """Refuse a URL with what may be a secret, a chain (``a::b``) or an unknown scheme. A path is no URL."""
    scheme, mark, rest = where.partition("://")
    if mark and re.search("[@?#]", rest) and not hub_id(where):  # in a hub id it is a revision
        raise BadData("a password in the URL would be visible: use the environment or fsspec's settings (no @, ? or #)")
    if mark and ("::" in where or scheme not in SCHEMES):
        raise BadData(f"{ascii(scheme[:40])[1:-1]}://…: expected one of {', '.join(SCHEMES)}, without ::")
