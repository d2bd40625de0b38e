"""Prints what CHANGELOG.md says of a version, as the notes of its release.

usage: deploy/notes.py VERSION
"""

import pathlib
import re
import sys


def main():
    version = sys.argv[1]
    text = pathlib.Path("CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if not section:
        sys.exit(f"notes: CHANGELOG.md has no section for {version}")
    print(section[1].strip())


if __name__ == "__main__":
    main()
