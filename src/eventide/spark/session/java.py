"""Which Java there is, before Spark is started with it: its own message for a wrong one is a stack trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from eventide.errors import ProgramError

NEEDED = 17
_ADVICE = (
    f"Spark needs Java {NEEDED} or newer. Install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: "
    "brew install openjdk@17), and let JAVA_HOME or the PATH point to it"
)


def check_java() -> str:
    """Look for Java where Spark does: in JAVA_HOME, else on the PATH.

    Returns:
        The program to start.

    Raises:
        ProgramError: if there is none, or it is too old, saying what was found.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not shutil.which(java):
        place = f"JAVA_HOME is {home}, where there is none" if home else "there is none on the PATH, and no JAVA_HOME"
        raise ProgramError(f"no Java was found: {place}. {_ADVICE}")
    version = java_version(java)
    if version is not None and version < NEEDED:
        raise ProgramError(f"the Java at {java} is version {version}. {_ADVICE}")
    return java


def java_version(java: str) -> int | None:
    """The major version of a Java; None if what it says of itself cannot be understood."""
    return major_version(subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr)


def major_version(said: str) -> int | None:
    """The version in what ``java -version`` says; None if it cannot be told.

    >>> major_version('openjdk version "17.0.15" 2025-04-15'), major_version('java version "1.8.0_292"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None
