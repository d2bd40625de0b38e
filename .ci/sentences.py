#!/usr/bin/env python3
"""Refuses long sentences and table cells in the pages that are written by hand, and words that stop a reader, there, in the comments of Rust
and in the messages of the programs:
usage: .ci/sentences.py [FILE...]

Without files, all pages and sources of the project. A sentence has at most 35 words, and ends with . : ; ? or ! before a space, with its paragraph, or with its point of a
list. A cell of a table has at most 40. Blocks of code are not read, nor what a command writes: a page that says "do not edit" at its head, and what stands between
`<!-- NAME: written by` and `<!-- NAME: end -->`.
"""

import pathlib
import re
import subprocess
import sys

CELL, SENTENCE = 40, 35
PAGES = ["*.md", "docs/*.md", "*.rs"]

# Old or rare words; `of` in front ("Of two replicas, one …"); "One that …" for a noun. Only what nobody writes with another meaning.
SIGNS = re.compile(
    r"\b(mend(s|ed|ing)?|anew|whoever|nobody minds|stands? in for|(is|are|was|were) told|tells? of|is no event)\b"
    r"|(^|[.:;]\s)(Of (two|those|such|others|them|these|several|both|the|an?|one|what|which|each|every)|One that|Whose|Whom)\b"
)


def emptied(match):
    """As many lines without words, so that those after them keep their numbers."""
    return "\n" * match[0].count("\n")


def by_hand(text):
    """The text without what is no prose of a person."""
    if re.search("do not edit", text[:400], re.IGNORECASE):
        return ""
    text = re.sub(r"<!-- ([^:>]+): written by.*?<!-- \1: end -->", emptied, text, flags=re.DOTALL)
    return re.sub(r"^( *)```.*?^\1```", emptied, text, flags=re.DOTALL | re.MULTILINE)


def parts(text):
    """Each cell and each paragraph, with the number of its first line and how many words each of its sentences may have."""
    paragraph, start = [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        cells = line.strip().startswith("|")
        if cells or not line.strip() or re.match(r"\s*([-*#>]|\d+\.)\s", line):
            if paragraph:
                yield start, SENTENCE, " ".join(paragraph)
            paragraph = []
        if cells:
            yield from ((number, CELL, cell) for cell in line.strip().strip("|").split("|"))
        elif line.strip():
            start = start if paragraph else number
            paragraph.append(line.strip())


def signs(file, text):
    for number, line in enumerate(text.split("\n"), 1):
        sign = SIGNS.search(re.sub("`[^`]*`", "", line.strip()))
        if sign:
            yield f"{file}:{number}: `{sign[0].strip('.:; ')}`: start with the noun, in plain words"


def comments(text):
    """The comments of Rust, as many lines."""
    return "\n".join(re.sub(r"^//[/!]?\s?", "", line.strip()) if line.strip().startswith("//") else "" for line in text.split("\n"))


def messages(file, text):
    """The texts in quotes of a program, as many lines; of its tests none."""
    if re.search(r"(^|/)(tests?|test-support|benches|fuzz)[/.]", file):
        return ""
    product = text.split("#[cfg(test)]")[0].split("\n")
    texts = (re.findall(r'"((?:[^"\\]|\\.)*)"', line) for line in product)
    return "\n".join(". ".join(found) for found in texts)


def problems(file):
    text = pathlib.Path(file).read_text(encoding="utf-8")
    if file.endswith(".rs"):
        yield from signs(file, comments(text))
        yield from signs(file, messages(file, text))
        return
    yield from signs(file, by_hand(text))
    for number, limit, part in parts(by_hand(text)):
        pieces = [part] if limit == CELL else re.split(r"(?<=[.:;?!])\s+", part)
        for piece in pieces:
            words = piece.split()
            if len(words) > limit:
                what = "table cell" if limit == CELL else "sentence"
                yield f"{file}:{number}: a {what} of {len(words)} words, more than {limit}: {' '.join(words[:8])} …"


def main():
    files = sys.argv[1:] or subprocess.run(["git", "ls-files", *PAGES], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    found = [problem for file in files if file and (file.endswith(".rs") or "/" not in file.removeprefix("docs/")) for problem in problems(file)]
    print("\n".join(found) or "no long sentences or cells, no words that stop a reader")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
