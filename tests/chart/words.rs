//! The pages that are written by hand are plain: no long cell of a table, no long sentence, and not too many words.

use std::fs;

/// The most words of a cell, of a sentence, and of all pages.
const CELL: usize = 40;
const SENTENCE: usize = 35;
const ALL: usize = 16_000;

/// What a reader reads of a page: neither blocks of code nor what a command writes between its marks.
fn by_hand(page: &str) -> String {
    let mut text = String::new();
    let (mut is_code, mut mark) = (false, None);
    for line in page.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if let Some(name) = line.strip_prefix("<!-- ").and_then(|rest| rest.split_once(": written by")) {
            mark = Some(format!("<!-- {}: end -->", name.0));
        } else if mark.as_deref() == Some(line) {
            mark = None;
        } else if !is_code && mark.is_none() {
            text += line;
            text.push('\n');
        }
    }
    text
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Adds the sentences of a paragraph that are too long, and empties it.
fn end(paragraph: &mut String, found: &mut Vec<String>, page: &str) {
    let mut sentence = Vec::new();
    for word in paragraph.split_whitespace() {
        sentence.push(word);
        if word.ends_with(['.', ':', ';', '?', '!']) {
            found.extend((sentence.len() > SENTENCE).then(|| format!("{page}: {}", sentence.join(" "))));
            sentence.clear();
        }
    }
    found.extend((sentence.len() > SENTENCE).then(|| format!("{page}: {}", sentence.join(" "))));
    paragraph.clear();
}

/// Where a new paragraph begins, or an entry of a list, or a heading.
fn begins(line: &str) -> bool {
    let number = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    line.trim().is_empty() || ["- ", "* ", "# "].iter().any(|sign| line.trim_start().starts_with(sign)) || number.starts_with(". ")
}

#[test]
fn the_pages_are_plain() {
    let mut pages: Vec<_> = fs::read_dir("docs").unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"].map(Into::into));
    let (mut all, mut found) = (0, Vec::new());
    for path in pages {
        let Ok(page) = fs::read_to_string(&path) else { continue };
        let name = path.display().to_string();
        if page.lines().take(4).any(|line| line.contains("do not edit")) {
            continue;
        }
        let mut paragraph = String::new();
        for line in by_hand(&page).lines() {
            if line.starts_with('|') {
                end(&mut paragraph, &mut found, &name);
                for cell in line.trim_matches('|').split('|') {
                    all += words(cell);
                    found.extend((words(cell) > CELL).then(|| format!("{name}: {}", cell.trim())));
                }
                continue;
            }
            if begins(line) || line.starts_with('#') {
                end(&mut paragraph, &mut found, &name);
            }
            all += words(line);
            paragraph += line;
            paragraph.push(' ');
        }
        end(&mut paragraph, &mut found, &name);
    }
    assert_eq!(found, [""; 0], "longer than {CELL} words in a cell, or {SENTENCE} in a sentence");
    assert!(all <= ALL, "{all} words by hand, of {ALL}");
}
