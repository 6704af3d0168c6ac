"""Builds the documentation into a folder of its version, beside those of other versions.

A hook of MkDocs. `site/0.2` has the pages of every eventide 0.2.z; a build replaces these, and leaves other versions.
`site/versions.json` is the list from which the theme lets the reader choose, and `site/index.html` leads to the newest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from eventide import __version__

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

_FORWARD = """\
<!doctype html>
<title>{name}</title>
<meta http-equiv="refresh" content="0; url={newest}/">
<a href="{newest}/">{name} {newest}</a>
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Build below the folder that was asked for."""
    release = Version(__version__).release
    config.site_dir = str(Path(config.site_dir, f"{release[0]}.{release[1]}"))
    return config


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write the list of versions, and the page that leads to the newest."""
    site = Path(config.site_dir).parent
    names = versions(site)
    listed = [{"version": name, "title": name, "aliases": []} for name in names]
    (site / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    forward = _FORWARD.format(name=config.site_name, newest=names[0])
    (site / "index.html").write_text(forward, encoding="utf-8")


def versions(site: Path) -> list[str]:
    """The folders of a site that have a version, the newest first."""
    found: dict[Version, str] = {}
    for folder in site.iterdir():
        try:
            found[Version(folder.name)] = folder.name
        except InvalidVersion:  # another file of the site's
            continue
    return [found[version] for version in sorted(found, reverse=True)]
