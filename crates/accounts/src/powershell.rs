//! PowerShell output of objects, in each form that people copy, as JSON: `ConvertTo-Json`, a list, a table, CSV. Accounts and domains in it.
//!
//! Invariants: a value that the console has cut off (`…`) is left out, so it counts as not printed; the text is walked over once for each form.

use anyhow::ensure;
use gmsa_core::credspec::generate::Domain;
use serde_json::{Map, Value};

mod accounts;

pub use accounts::accounts;

/// The objects of a text, as JSON: one, or a list of them. `None` if the text is in another format.
fn to_json(text: &str) -> Option<Value> {
    // Web pages and word processors keep columns together by other spaces.
    let text = text.trim_start_matches('\u{feff}').replace('\u{a0}', " ");
    let text = text.trim();
    // As a mail quotes it.
    let unquoted = |line| str::strip_prefix(line, "> ").unwrap_or(line);
    let lines: Vec<&str> = text.lines().map(unquoted).map(str::trim_end).filter(|line| !is_prompt(line)).collect();
    let objects = json(text).or_else(|| json_between(&lines)).or_else(|| csv(&lines));
    let objects = objects.or_else(|| list(&lines)).or_else(|| table(&lines))?;
    Some(match <[Value; 1]>::try_from(objects) {
        Ok([one]) => one,
        Err(objects) => Value::Array(objects),
    })
}

/// A line with the prompt, and the command behind it: `PS C:\Users\me> Get-ADDomain`.
fn is_prompt(line: &str) -> bool {
    let line = line.trim_start();
    line.strip_prefix("PS ").is_some_and(|rest| rest.contains('>')) || line.starts_with(">>")
}

/// JSON with other lines before or behind it.
fn json_between(lines: &[&str]) -> Option<Vec<Value>> {
    let starts = |line: &&str| line.trim_start().starts_with(['{', '[']);
    let ends = |line: &&str| line.trim_end().ends_with(['}', ']']);
    let (first, last) = (lines.iter().position(starts)?, lines.iter().rposition(ends)?);
    json(&lines.get(first..=last)?.join("\n"))
}

fn json(text: &str) -> Option<Vec<Value>> {
    Some(match serde_json::from_str(text).ok()? {
        Value::Array(objects) => objects,
        one => vec![one],
    })
}

/// The first object of a text that has this property, where one has it: a domain printed beside an account.
fn object_with(text: &str, property: &str) -> Option<Value> {
    match to_json(text)? {
        Value::Array(objects) => objects.into_iter().find(|object| object.get(property).is_some()),
        object => Some(object),
    }
}

/// The domain that `Get-ADDomain` printed.
///
/// # Errors
/// If a property is missing, or the text is in another format.
pub fn domain(text: &str) -> anyhow::Result<Domain> {
    // A text in no known format gets the error of the JSON parser.
    let Some(printed) = object_with(text, "DNSRoot") else { return Ok(Domain::from_directory(text)?) };
    let is_missing = |name: &&str| printed.get(*name).is_none_or(Value::is_null);
    let missing: Vec<&str> =
        ["DNSRoot", "NetBIOSName", "DomainSID", "ObjectGUID", "Forest"].into_iter().filter(is_missing).collect();
    ensure!(
        missing.is_empty(),
        "it has no {}: it was not printed, or the console cut it off; make the file by: Get-ADDomain | ConvertTo-Json",
        missing.join(", ")
    );
    Ok(Domain::from_directory(&printed.to_string())?)
}

/// The output of `ConvertTo-Csv` and `Export-Csv`: a head of quoted names, then a line for each object. Many countries write `;` between.
fn csv(lines: &[&str]) -> Option<Vec<Value>> {
    let mut rows = lines.iter().filter(|line| !line.is_empty() && !line.starts_with("#TYPE"));
    let head = rows.next().filter(|head| head.trim_start().starts_with('"'))?;
    let separator = [',', ';'].into_iter().find(|c| head.contains(&format!("\"{c}\"")))?;
    let names = cells(head, separator)?;
    let object = |row: &&str| {
        let fields =
            names.iter().cloned().zip(cells(row, separator)?).filter_map(|(name, text)| Some((name, value(&text)?)));
        Some(Value::Object(fields.collect()))
    };
    rows.map(object).collect::<Option<Vec<_>>>().filter(|objects| !objects.is_empty())
}

/// The cells of a line; a quote in a quoted one stands twice.
fn cells(line: &str, separator: char) -> Option<Vec<String>> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    let mut characters = line.trim().chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if !is_quoted || characters.next_if_eq(&'"').is_none() => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => cells.push(String::new()),
            c => cells.last_mut()?.push(c),
        }
    }
    (!is_quoted).then_some(cells)
}

/// The default output, or the output of `Format-List`: `Name : value`. A value goes on in lines that are indented further.
fn list(lines: &[&str]) -> Option<Vec<Value>> {
    let mut objects: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for line in lines {
        // Another object may have other fields: nothing of one counts for the other.
        if line.trim().is_empty() && objects.last().is_some_and(|fields| fields.len() > 1) {
            objects.push(Vec::new());
        }
        let field = line.split_once(" :").filter(|(name, _)| {
            let name = name.trim();
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
        });
        match field {
            Some((name, value)) => {
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                let is_next = objects
                    .last()
                    .is_some_and(|fields| fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)));
                if is_next {
                    objects.push(Vec::new());
                }
                objects.last_mut()?.push((name, value));
            }
            None if line.starts_with(' ') => {
                if let Some((_, value)) = objects.last_mut().and_then(|fields| fields.last_mut()) {
                    // A list is broken behind its commas; a text may be broken anywhere.
                    if value.ends_with(',') {
                        value.push(' ');
                    }
                    value.push_str(line.trim());
                }
            }
            None => {}
        }
    }
    let object = |fields: Vec<(String, String)>| -> Map<String, Value> {
        fields.into_iter().filter_map(|(name, text)| Some((name, value(&text)?))).collect()
    };
    // Less is a sentence with a colon.
    let objects: Vec<Value> =
        objects.into_iter().filter(|fields| fields.len() > 1).map(object).map(Value::Object).collect();
    (!objects.is_empty()).then_some(objects)
}

/// The default output for few properties, or the output of `Format-Table`: a head, a line of dashes, then a line for each object.
fn table(lines: &[&str]) -> Option<Vec<Value>> {
    let is_rule = |line: &&str| line.contains("--") && line.chars().all(|c| c == '-' || c == ' ');
    let rule = lines.iter().position(is_rule)?;
    let (head, dashes) = (lines.get(rule.checked_sub(1)?)?, lines.get(rule)?);
    // A column reaches to the start of the next one.
    let is_start = |(at, c): &(usize, char)| *c == '-' && (*at == 0 || dashes.get(at - 1..*at) == Some(" "));
    let starts: Vec<usize> = dashes.char_indices().filter(is_start).map(|(at, _)| at).collect();
    let cell = |line: &str, column: usize| -> Option<String> {
        let start = *starts.get(column)?;
        let end = starts.get(column + 1).copied().unwrap_or(usize::MAX);
        let cell: String = line.chars().skip(start).take(end.saturating_sub(start)).collect();
        Some(cell.trim().to_owned())
    };
    let object = |line: &&str| {
        let fields = (0..starts.len()).filter_map(|column| {
            let (name, text) = (cell(head, column)?, cell(line, column)?);
            Some((name, value(&text)?))
        });
        Value::Object(fields.collect())
    };
    let rows = lines.get(rule + 1..)?.iter().take_while(|line| !line.is_empty());
    let objects: Vec<Value> = rows.map(object).collect();
    (!objects.is_empty()).then_some(objects)
}

/// A value as it is printed; `None` where it is cut off.
fn value(text: &str) -> Option<Value> {
    let is_cut = |text: &str| text.ends_with("...") || text.ends_with('…');
    if let Some(inner) = text.strip_prefix('{').filter(|_| !text.starts_with("{0") || text.contains(',')) {
        let inner = inner.strip_suffix('}')?.trim();
        if is_cut(inner) {
            return None;
        }
        let items = inner.split(", ").map(str::trim).filter(|item| !item.is_empty());
        return items.map(value).collect::<Option<Vec<_>>>().map(Value::Array);
    }
    Some(match text {
        "" => Value::Null,
        text if is_cut(text) => return None,
        "True" | "true" => Value::Bool(true),
        "False" | "false" => Value::Bool(false),
        text => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_read_with_the_prompt_around_it() {
        let domain = json!({"DNSRoot": "contoso.com", "Sizes": [1]});
        for text in [
            "{\"DNSRoot\": \"contoso.com\", \"Sizes\": [1]}",
            "\u{feff}PS C:\\> Get-ADDomain | ConvertTo-Json\r\n{\r\n  \"DNSRoot\": \"contoso.com\",\r\n  \"Sizes\": [1]\r\n}\r\nPS C:\\>\r\n",
            "PS AD:\\> Get-ADDomain |\n>> ConvertTo-Json\n  [\n  {\"DNSRoot\": \"contoso.com\", \"Sizes\": [1]}\n]",
            "[{\"DNSRoot\": \"contoso.com\", \"Sizes\": [1]}]",
            "> {\n>   \"DNSRoot\": \"contoso.com\",\n>   \"Sizes\": [1]\n> }",
        ] {
            assert_eq!(to_json(text), Some(domain.clone()), "{text}");
        }
    }

    #[test]
    fn a_list_is_read_with_values_that_go_on() {
        let text = "\n    DNSRoot : contoso.com\n    Enabled : True\n    Hosts   : {CN=a,DC=b, CN=c,DC=d,\n              CN=e}\n    Number  : 4096\n    Parent  :\n    Cut     : {CN=x...}\n    Long    : {CN=y, CN=z…\n";
        let object = json!({
            "DNSRoot": "contoso.com", "Enabled": true, "Hosts": ["CN=a,DC=b", "CN=c,DC=d", "CN=e"], "Number": 4096, "Parent": null,
        });
        assert_eq!(to_json(text), Some(object));
        let two = "Name : a\nSid : S-1\n\nName : b\nSid : S-2\n";
        assert_eq!(to_json(two), Some(json!([{"Name": "a", "Sid": "S-1"}, {"Name": "b", "Sid": "S-2"}])));
    }

    #[test]
    fn csv_and_tables_are_read() {
        let csv =
            "#TYPE Microsoft.ActiveDirectory.Management.ADDomain\r\n\"Name\",\"Said\"\r\n\"a\",\"x \"\"y\"\", z\"\r\n";
        assert_eq!(to_json(csv), Some(json!({"Name": "a", "Said": "x \"y\", z"})));
        assert_eq!(to_json("\"Name\";\"Said\"\n\"a\";\"x, y\"\n"), Some(json!({"Name": "a", "Said": "x, y"})));
        let both = "Name : a\nObjectGUID : 1\n\n\nDNSRoot : contoso.com\nObjectGUID : 2\n";
        assert_eq!(object_with(both, "DNSRoot"), Some(json!({"DNSRoot": "contoso.com", "ObjectGUID": 2})));
        let table = "\nName    SamAccountName Enabled\n----    -------------- -------\nWebApp1 WebApp1$       True\nLong    VeryLongNam... False\n\n";
        assert_eq!(
            to_json(table),
            Some(json!([
                {"Name": "WebApp1", "SamAccountName": "WebApp1$", "Enabled": true}, {"Name": "Long", "Enabled": false},
            ]))
        );
    }

    #[test]
    fn other_texts_are_none_of_the_forms() {
        for text in ["", "Get-ADDomain : Unable to contact the server.", "a -- b", "{ \"DNSRoot\": ", "name: value"] {
            assert_eq!(to_json(text), None, "{text}");
        }
    }
}
