"""Contents of the JVM's heap, from its own log of collections; and a full one, after which what lives is left."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

_COLLECTED = re.compile(r"\[gc *\] GC\(\d+\) Pause .*?(\d+)M->(\d+)M\((\d+)M\)")
_CLASSES = re.compile(r"\[gc,metaspace *\] GC\(\d+\) Metaspace: (\d+)K")


def options(folder: Path) -> str:
    """Options that tell a JVM to write its log into a folder, under the number of its process."""
    return f"-Xlog:gc,gc+metaspace=info:file={folder}/gc-%p.log:uptime,tags:filecount=0"


def collect(process: int) -> None:
    """Make a JVM collect all of its garbage, as far as its JDK has the tool to ask for it."""
    found = shutil.which("jcmd", path=os.pathsep.join([f"{os.environ.get('JAVA_HOME', '')}/bin", os.environ["PATH"]]))
    if found is not None and process:
        subprocess.run([found, str(process), "GC.run"], capture_output=True, timeout=60, check=False)


def taken(folder: Path, process: int) -> dict[str, float]:
    """The heap after the last collection, and what classes take outside of it; nothing before there was one."""
    log = folder / f"gc-{process}.log"
    text = log.read_text() if log.exists() else ""
    heap, classes = _COLLECTED.findall(text), _CLASSES.findall(text)
    found = {"collections": float(len(heap))}
    if heap:
        found["heap after a collection, MB"] = float(heap[-1][1])
        found["heap that it has, MB"] = int(heap[-1][2]) * 2**20 / 1e6
    if classes:
        found["classes, MB"] = int(classes[-1]) / 1e3
    return {f"jvm: {what}": number for what, number in found.items()}
