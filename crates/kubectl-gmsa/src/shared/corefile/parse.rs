//! From words to server blocks.

use std::collections::{HashMap, VecDeque};

use super::{
    Corefile, CorefileError, DNS, DNS_PORT, DnsPlugin, MAX_BYTES, MAX_IMPORTS, MAX_WORDS, Server, Zone, lexer,
    lexer::Word,
};

pub(super) struct Parser<'f> {
    words: VecDeque<Word>,
    files: &'f dyn Fn(&str) -> Option<Vec<String>>,
    snippets: HashMap<String, Vec<Word>>,
    imports: usize,
    bytes: usize,
    /// The line of the last word that was read.
    line: usize,
    found: Corefile,
}

impl<'f> Parser<'f> {
    pub fn new(text: &str, files: &'f dyn Fn(&str) -> Option<Vec<String>>) -> Result<Self, CorefileError> {
        let snippets = HashMap::new();
        let mut parser =
            Self { words: VecDeque::new(), files, snippets, imports: 0, bytes: 0, line: 1, found: Corefile::default() };
        parser.words = parser.lex(text)?.into();
        Ok(parser)
    }

    pub fn corefile(mut self) -> Result<Corefile, CorefileError> {
        while !self.words.is_empty() {
            self.block()?;
        }
        Ok(self.found)
    }

    /// The words of one more text.
    fn lex(&mut self, text: &str) -> Result<Vec<Word>, CorefileError> {
        self.bytes += text.len();
        if self.bytes > MAX_BYTES { Err(CorefileError::TooLarge) } else { lexer::words(text) }
    }

    fn next(&mut self) -> Option<Word> {
        let word = self.words.pop_front()?;
        self.line = word.line;
        Some(word)
    }

    fn next_if(&mut self, is_wanted: impl Fn(&Word) -> bool) -> Option<Word> {
        if is_wanted(self.words.front()?) { self.next() } else { None }
    }

    /// Whether the next word is this one.
    fn is_next(&self, text: &str) -> bool {
        self.words.front().is_some_and(|word| word.text == text)
    }

    fn error(&self, problem: &'static str) -> CorefileError {
        CorefileError::Syntax { line: self.line, problem }
    }

    /// A server block, a snippet, or imports between them.
    fn block(&mut self) -> Result<(), CorefileError> {
        let keys = self.keys()?;
        if let [key] = &keys[..]
            && let Some(name) = key.strip_prefix('(').and_then(|key| key.strip_suffix(')'))
            && !self.words.is_empty()
        {
            return self.snippet(name.to_owned());
        }
        let has_braces = self.is_next("{");
        if has_braces {
            self.next();
        }
        let (plugins, is_closed) = self.plugins()?;
        if has_braces && !is_closed {
            return Err(self.error("a server block has no } at its end"));
        }
        if !keys.is_empty() {
            let zones = keys.iter().map(|key| self.zone(key)).collect::<Result<_, _>>()?;
            self.found.unread.extend(keys.into_iter().filter(|key| has_variable(key)));
            self.found.servers.push(Server { zones, plugins });
        }
        Ok(())
    }

    /// What is before the brace: keys, on one line, or on several where a comma ends the line.
    fn keys(&mut self) -> Result<Vec<String>, CorefileError> {
        let (mut keys, mut expects_another) = (Vec::new(), false);
        while let Some(word) = self.words.front() {
            if word.text == "import" && word.starts_line {
                self.next();
                self.import()?;
            } else if word.text == "{" {
                if expects_another {
                    return Err(self.error("a comma is before a {"));
                }
                break;
            } else if word.starts_line && !keys.is_empty() && !expects_another {
                break;
            } else if let Some(word) = self.next() {
                let key = word.text.strip_suffix(',');
                if !word.text.is_empty() {
                    expects_another = key.is_some();
                    keys.push(key.map_or(word.text.clone(), str::to_owned));
                }
            }
        }
        if expects_another { Err(self.error("a comma is before the end")) } else { Ok(keys) }
    }

    fn snippet(&mut self, name: String) -> Result<(), CorefileError> {
        if !self.is_next("{") {
            return Err(self.error("a snippet has no { after its name"));
        }
        self.next();
        let (mut words, mut depth) = (Vec::new(), 1_usize);
        while let Some(word) = self.next() {
            match word.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return match self.snippets.insert(name, words) {
                    None => Ok(()),
                    Some(_) => Err(self.error("a snippet is defined twice")),
                };
            }
            words.push(word);
        }
        Err(self.error("a snippet has no } at its end"))
    }

    /// Puts what an import names in its place. The word `import` itself has been read.
    fn import(&mut self) -> Result<(), CorefileError> {
        let Some(pattern) = self.next_if(|word| !word.starts_line && !word.text.is_empty()) else {
            return Err(self.error("an import names no file"));
        };
        if self.words.front().is_some_and(|word| !word.starts_line) {
            return Err(self.error("an import names more than one file"));
        }
        self.imports += 1;
        let mut words = Vec::new();
        if let Some(snippet) = self.snippets.get(&pattern.text) {
            words.clone_from(snippet);
        } else if let Some(texts) = (self.files)(&pattern.text) {
            for text in texts {
                words.extend(self.lex(&text)?);
            }
        } else {
            self.found.unread.push(format!("import {}", pattern.text));
        }
        if self.imports > MAX_IMPORTS || self.words.len() + words.len() > MAX_WORDS {
            return Err(CorefileError::TooLarge);
        }
        if let Some(first) = words.first_mut() {
            first.starts_line = true;
        }
        words.into_iter().rev().for_each(|word| self.words.push_front(word));
        Ok(())
    }

    /// The plugins up to the brace that ends the block, or to the end; and whether it was the brace.
    fn plugins(&mut self) -> Result<(Vec<DnsPlugin>, bool), CorefileError> {
        let mut plugins = Vec::new();
        while let Some(word) = self.next() {
            match word.text.as_str() {
                "}" => return Ok((plugins, true)),
                "import" => self.import()?,
                _ => plugins.push(self.plugin(word.text)?),
            }
        }
        Ok((plugins, false))
    }

    /// The rest of a plugin, to the end of its line and of the braces that are open there.
    fn plugin(&mut self, name: String) -> Result<DnsPlugin, CorefileError> {
        let mut plugin = DnsPlugin { name, arguments: Vec::new(), block: None };
        let mut depth = 0_usize;
        while let Some(word) = self.next_if(|word| depth > 0 || !word.starts_line || word.text == "{") {
            let ends = word.text == "}";
            if ends && depth == 0 {
                return Err(self.error("a } has no {"));
            } else if word.text == "import" && word.starts_line {
                self.import()?;
                continue;
            }
            depth = if ends { depth - 1 } else { depth };
            match (&mut plugin.block, depth) {
                (block, 0) if !ends && word.text == "{" => drop(block.get_or_insert_default()),
                (_, 0) if ends => {}
                (_, 0) => plugin.arguments.push(word.text.clone()),
                (block, _) => {
                    let lines = block.get_or_insert_default();
                    match lines.last_mut() {
                        Some(line) if !word.starts_line => line.push(word.text.clone()),
                        _ => lines.push(vec![word.text.clone()]),
                    }
                }
            }
            depth += usize::from(word.text == "{");
        }
        if depth > 0 { Err(self.error("a plugin has no } at its end")) } else { Ok(plugin) }
    }

    fn zone(&self, key: &str) -> Result<Zone, CorefileError> {
        let known = TRANSPORTS
            .iter()
            .find_map(|(transport, port)| Some((*transport, *port, key.strip_prefix(transport)?.strip_prefix("://")?)));
        let (transport, port, rest) = known.unwrap_or((DNS, DNS_PORT, key));
        let (name, port) = match rest.rsplit_once(':') {
            Some((_, "")) => return Err(self.error("a zone ends with a colon")),
            Some((name, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                (name, digits.parse().map_err(|_| self.error("the port of a zone is larger than 65535"))?)
            }
            _ => (rest, port),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_lowercase();
        if name.len() > MAX_ZONE {
            return Err(self.error("a zone is longer than 255 characters"));
        }
        Ok(Zone { name: if name.is_empty() { ".".to_owned() } else { name }, port, transport })
    }
}

const MAX_ZONE: usize = 255;

/// `plugin/pkg/transport` of CoreDNS.
const TRANSPORTS: [(&str, u16); 6] =
    [(DNS, DNS_PORT), ("tls", 853), ("quic", 853), ("grpc", 443), ("https3", 443), ("https", 443)];

/// Whether CoreDNS replaces a part of it by the value of a variable.
fn has_variable(word: &str) -> bool {
    word.contains("{$") || word.contains("{%")
}
