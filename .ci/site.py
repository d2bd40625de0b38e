"""What MkDocs calls while it builds the site: adds the pages outside docs/, makes one page for each rule and each family of messages, and turns the links
of a repository into those of the site. A link to nothing is a warning, which ends a strict build.
"""

import html
import logging
import os
import pathlib
import posixpath
import re

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

ROOT = pathlib.Path(__file__).resolve().parent.parent
MERMAID = "assets/mermaid.min.js"
log = logging.getLogger("mkdocs.hooks.site")

# Files of the repository that are pages of the site, beside those in docs/.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "SUPPORT.md": "SUPPORT.md",
    "charts/gmsa-accounts/README.md": "charts/gmsa-accounts.md",
    "charts/gmsa-tickets/README.md": "charts/gmsa-tickets.md",
    "charts/gmsa-webhook/README.md": "charts/gmsa-webhook.md",
    "examples/README.md": "examples.md",
}
# What a browser would ask another host for; a page's canonical address is its own.
FOREIGN = re.compile(r'<(?:script|img|iframe|link(?! rel="canonical"))\b[^>]*\b(?:src|href)="(https?:)?//[^"]*')
# Long references that hold every word: the search shows what explains a word before them.
LAST = ("charts/", "cli.md", "metrics.md", "measurements.md")
# What tells an editor of a page where it comes from.
MADE = re.compile(r"^Made (?:by|of|from) .*: do not edit\.\n", re.MULTILINE)
LINK = re.compile(r"(?<!`)(\]\()([^()\s]+)(\))|(\ssrc=\")([^\"]+)(\")")
CODE = re.compile(r"^( *)```(?s:.*?)^\1```|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)", re.MULTILINE)


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def sections(text, level):
    """The text before the first heading of a level, and each heading with what follows it."""
    parts = re.split(rf"^{'#' * level} (.+)$", text, flags=re.MULTILINE)
    return parts[0], list(zip(parts[1::2], parts[2::2], strict=True))


def described(text, title, search):
    """The head of a page: what search engines show of it, and its place in the site's own search."""
    return f"---\ntitle: {quoted(title)}\ndescription: {quoted(text)}\nsearch: {{{search}}}\n---\n\n"


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def rules():
    """A page for each rule, with the messages that have it, and the list of all."""
    head, groups = sections((ROOT / "docs/rules.md").read_text(encoding="utf-8"), 2)
    messages = {}
    for line in (ROOT / "docs/messages.md").read_text(encoding="utf-8").splitlines():
        if row := re.fullmatch(r"\| (.+) \| \[([a-z0-9-]+)\]\(rules\.md#\2\) \|", line):
            messages.setdefault(row[2], []).append(row[1])
    listed = head
    for group, text in groups:
        before, found = sections(text, 3)
        listed += f"## {group}\n{before}\n| Rule | Finds |\n|---|---|\n"
        for name, body in found:
            first = body.strip().split("\n\n")[0].replace("\n", " ")
            cell = first.replace("|", "\\|")
            listed += f"| [{name}](rules/{name}.md) | {cell} |\n"
            seen = "".join(f"| {message} |\n" for message in messages.get(name, []))
            seen = f"\n## Messages\n\n| Message |\n|---|\n{seen}" if seen else ""
            title = described(first, name, "boost: 2")
            yield f"rules/{name}.md", f"{title}# {name}\n\n[Rules](../rules.md) / {group}\n{body}{seen}"
        listed += "\n"
    yield "rules.md", listed


def families():
    """A page for each family of messages, and the list of these."""
    head, found = sections((ROOT / "docs/messages.md").read_text(encoding="utf-8"), 2)
    listed = head + "| Family | Messages |\n|---|---|\n"
    for title, text in found:
        path = f"messages/{slug(title)}.md"
        count = len(re.findall(r"^\| .*\]\(", text, re.MULTILINE))
        listed += f"| [{title}]({path}) | {count} |\n"
        # The site's search leads to the page of the rule, which has the same messages and says what to do.
        page = described("Messages: " + title, title, "exclude: true")
        yield path, f"{page}# {title}\n\n[Messages](../messages.md)\n{text.replace('rules.md#', '../rules.md#')}"
    yield "messages.md", listed


def on_files(files, config):
    for path, text in [*rules(), *families()]:
        if known := files.get_file_from_path(path):
            files.remove(known)
        files.append(File.generated(config, path, content=text))
    for source, path in PAGES.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text(encoding="utf-8")))
    if script := os.environ.get("MERMAID"):
        files.append(File.generated(config, MERMAID, abs_src_path=script))
    return files


def source_of(page):
    """The path that the page's text has in the repository."""
    return next((source for source, path in PAGES.items() if path == page), f"docs/{page}")


def linked(target, page, files, repository):
    """The link of the site for a link of the repository."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source_of(page)), path))
    site = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
    if site == "rules.md" and files.get_file_from_path(f"rules/{anchor}.md"):
        site, anchor = f"rules/{anchor}.md", ""
    elif site == "messages.md" and files.get_file_from_path(f"messages/{anchor}.md"):
        site, anchor = f"messages/{anchor}.md", ""
    if site and files.get_file_from_path(site):
        return posixpath.relpath(site, posixpath.dirname(page) or ".") + (anchor and f"#{anchor}")
    if not (ROOT / path).exists():
        log.warning("%s: a link to %s, which does not exist", source_of(page), path)
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository}/{kind}/main/{path}" + (anchor and f"#{anchor}")


def on_page_markdown(markdown, page, config, files):
    markdown = MADE.sub("", markdown, count=1)

    def link(match):
        before, target, after = (group for group in match.groups() if group is not None)
        return before + linked(target, page.file.src_uri, files, config.extra["repository"]) + after

    if page.file.src_uri.startswith(LAST):
        page.meta["search"] = {"boost": 0.5}
    # Links are in the prose alone; a code span in a link's text ends before its target.
    pieces, end = [], 0
    for code in CODE.finditer(markdown):
        pieces += [prose(LINK.sub(link, markdown[end : code.start()])), piped(code[0])]
        end = code.end()
    return "".join([*pieces, prose(LINK.sub(link, markdown[end:]))])


def piped(code):
    """A code span in a cell: GitHub needs its `|` escaped, Python's Markdown shows the backslash."""
    return code if "\n" in code else code.replace("\\|", "|")


def prose(text):
    """A list right below its paragraph, which Python's Markdown reads as a part of that."""
    return re.sub(r"^((?!\s*(?:[-*|#>]|\d+\.)\s)\S.*\n)(?=(?:[-*]|\d+\.) )", r"\1\n", text, flags=re.MULTILINE)


def on_page_content(content, page, config, files):
    """Mermaid only where there is a diagram, and from the site itself: the theme would load it from elsewhere."""
    if 'class="mermaid"' in content:
        url = html.escape(get_relative_url(MERMAID, page.url))
        content += f'<script src="{url}"></script>'
    return content


def on_post_page(output, page, config):
    """Nobody but the site's own host learns who reads a page."""
    for match in FOREIGN.finditer(output):
        log.warning("%s: a browser would load %s", page.file.src_uri, match[0])
    return output
