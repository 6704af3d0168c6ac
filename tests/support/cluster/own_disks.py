"""Processes that have a disk of their own: what one of them writes there, no other sees, and it is gone with it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_TEMPORARY = Path(tempfile.gettempdir()).resolve()
_REPOSITORY = Path(__file__).parents[3]
_SCRIPT = """
set -e
temporary=$1; shift
mount -t tmpfs shared /mnt
for place; do
    [ "$place" = -- ] && break
    mkdir -p "/mnt$place"
    mount --bind "$place" "/mnt$place"
done
mount -t tmpfs own "$temporary"
while [ "$1" != -- ]; do
    mkdir -p "$1"
    mount --move "/mnt$1" "$1"
    shift
done
shift
mkdir -p "$PWD"
cd "$temporary"
exec "$@"
"""


def with_own_disk(*shared: Path) -> Sequence[str]:
    """Return the prefix of a command that sees an empty folder for temporary files, and these folders in it."""
    installed = [_REPOSITORY, Path(sys.prefix)]
    seen = [str(path) for path in (*installed, *shared) if path.resolve().is_relative_to(_TEMPORARY)]
    return "unshare", "--mount", "sh", "-c", _SCRIPT, "sh", str(_TEMPORARY), *seen, "--"


def can_have_own_disks() -> bool:
    """Whether this user may mount something that others do not see."""
    try:
        return subprocess.run([*with_own_disk(), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
