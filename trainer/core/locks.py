"""One writer at a time: a lock on an open file or folder.

The folder itself is locked, so no lock file is left in a dataset or run; filelock must leave one on Linux.
``aegen`` and ``trainer`` carry this file byte for byte.
"""

from __future__ import annotations


def lock(descriptor: int) -> bool:
    """Lock an open file or folder until it is closed or the process ends, however it ends.

    False if another process holds the lock.
    """
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
