//! From words to server blocks.

use std::collections::{HashMap, VecDeque};

use super::{
    Corefile, CorefileError, DNS, DNS_PORT, DnsPlugin, MAX_BYTES, MAX_IMPORTS, MAX_WORDS, Server, Zone, lexer,
    lexer::Word, route::normal,
};

struct Parser<'f> {
    words: VecDeque<Word>,
    files: &'f dyn Fn(&str) -> Option<Vec<String>>,
    snippets: HashMap<String, Vec<Word>>,
    imports: usize,
    bytes: usize,
    /// The line of the last word.
    line: usize,
    found: Corefile,
}

impl Corefile {
    /// Parses a Corefile. `files` returns the texts of the files that match a pattern of `import`, in the order of their names, or `None`
    /// if they are not known.
    ///
    /// # Errors
    /// If CoreDNS would not start with it, or a limit is exceeded.
    pub fn parse(text: &str, files: &dyn Fn(&str) -> Option<Vec<String>>) -> Result<Self, CorefileError> {
        let (words, snippets, found) = (VecDeque::new(), HashMap::new(), Self::default());
        let mut parser = Parser { words, files, snippets, imports: 0, bytes: 0, line: 1, found };
        parser.words = parser.lex(text)?.into();
        while !parser.words.is_empty() {
            parser.block()?;
        }
        Ok(parser.found)
    }
}

impl Parser<'_> {
    /// The words of another text.
    fn lex(&mut self, text: &str) -> Result<Vec<Word>, CorefileError> {
        self.bytes += text.len();
        if self.bytes > MAX_BYTES { Err(CorefileError::TooLarge) } else { lexer::words(text) }
    }

    fn next(&mut self) -> Option<Word> {
        let word = self.words.pop_front()?;
        self.line = word.line;
        Some(word)
    }

    fn take(&mut self, is_wanted: impl Fn(&Word) -> bool) -> Option<Word> {
        if is_wanted(self.words.front()?) { self.next() } else { None }
    }

    /// Takes the next word if it is wanted, after expanding any import before it.
    fn next_if(&mut self, is_wanted: impl Fn(&Word) -> bool) -> Result<Option<Word>, CorefileError> {
        while self.take(|word| word.starts_line && word.text == "import").is_some() {
            self.import()?;
        }
        Ok(self.take(is_wanted))
    }

    /// Takes the opening brace of a block, if there is one. The next word counts as the start of a line.
    fn opens(&mut self) -> bool {
        let is_open = self.take(|word| word.text == "{").is_some();
        if let Some(first) = self.words.front_mut().filter(|_| is_open) {
            first.starts_line = true;
        }
        is_open
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
        let (has_braces, mut is_closed, mut plugins) = (self.opens(), false, Vec::new());
        while let Some(word) = self.next_if(|_| !is_closed)? {
            is_closed = word.text == "}";
            if !is_closed {
                plugins.push(self.plugin(word.text)?);
            }
        }
        if has_braces && !is_closed {
            return Err(self.error("a server block has no } at its end"));
        }
        if !keys.is_empty() {
            let zones = keys.iter().map(|key| self.zone(key)).collect::<Result<_, _>>()?;
            // CoreDNS replaces a variable in it by its value.
            let has_variable = |key: &String| key.contains("{$") || key.contains("{%");
            self.found.unread.extend(keys.into_iter().filter(has_variable));
            self.found.servers.push(Server { zones, plugins });
        }
        Ok(())
    }

    /// The keys before the brace: on one line, or on several if a comma ends the line.
    fn keys(&mut self) -> Result<Vec<String>, CorefileError> {
        let (mut keys, mut expects_another) = (Vec::new(), false);
        while let Some(Word { text, .. }) = self.next_if(|word| {
            let is_of_line = !word.starts_line || keys.is_empty() || expects_another;
            word.text != "{" && is_of_line
        })? {
            if !text.is_empty() {
                let key = text.strip_suffix(',');
                expects_another = key.is_some();
                keys.push(key.unwrap_or(&text).to_owned());
            }
        }
        match self.words.front() {
            _ if !expects_another => Ok(keys),
            Some(_) => Err(self.error("a comma is before a {")),
            None => Err(self.error("a comma is before the end")),
        }
    }

    fn snippet(&mut self, name: String) -> Result<(), CorefileError> {
        if !self.opens() {
            return Err(self.error("a snippet has no { after its name"));
        }
        let (mut words, mut depth) = (Vec::new(), 1_usize);
        while let Some(word) = self.next() {
            match word.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let is_first = self.snippets.insert(name, words).is_none();
                return if is_first { Ok(()) } else { Err(self.error("a snippet is defined twice")) };
            }
            words.push(word);
        }
        Err(self.error("a snippet has no } at its end"))
    }

    /// Replaces an import by the words it names. The word `import` itself has been read.
    fn import(&mut self) -> Result<(), CorefileError> {
        let Some(pattern) = self.take(|word| !word.starts_line && !word.text.is_empty()) else {
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

    /// The rest of a plugin, up to the end of its line and of the braces opened there.
    fn plugin(&mut self, name: String) -> Result<DnsPlugin, CorefileError> {
        let mut plugin = DnsPlugin { name, arguments: Vec::new(), block: Vec::new() };
        let mut depth = 0_usize;
        while let Some(word) = self.next_if(|word| depth > 0 || !word.starts_line || word.text == "{")? {
            let before = depth;
            match word.text.as_str() {
                "{" => depth += 1,
                "}" if depth == 0 => return Err(self.error("a } has no {")),
                "}" => depth -= 1,
                _ => {}
            }
            match (before.min(depth), word.text.as_str()) {
                (0, "{" | "}") => {}
                (0, _) => plugin.arguments.push(word.text),
                _ => match plugin.block.last_mut() {
                    Some(line) if !word.starts_line => line.push(word.text),
                    _ => plugin.block.push(vec![word.text]),
                },
            }
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
        let name = normal(name);
        if name.len() > MAX_ZONE {
            return Err(self.error("a zone is longer than 255 characters"));
        }
        Ok(Zone { name, port, transport })
    }
}

const MAX_ZONE: usize = 255;

/// `plugin/pkg/transport` of CoreDNS.
const TRANSPORTS: [(&str, u16); 6] =
    [(DNS, DNS_PORT), ("tls", 853), ("quic", 853), ("grpc", 443), ("https3", 443), ("https", 443)];
