//! Documents, their places, and what is said about broken ones.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::{node::NodeContents, *};

impl Manifests {
    /// The documents, or everything that is wrong, foreign documents included.
    pub(crate) fn complete(self) -> Result<Vec<Document>, Error> {
        let Self { documents, problems, .. } = self.strict();
        Error::unless_none(problems)?;
        Ok(documents)
    }
}

/// Reads a text as the server does.
fn parse(name: &str, text: &str) -> Manifests {
    super::parse(name, text, &Bounds::SERVER)
}

fn documents(text: &str) -> Vec<Document> {
    parse("a.yaml", text).complete().unwrap()
}

/// The whole message of a text that cannot be read.
fn error(text: &str) -> String {
    parse("a.yaml", text).complete().unwrap_err().to_string()
}

/// The place of each object in a text: document, line, kind.
fn places(text: &str) -> Vec<(usize, u64, String)> {
    let place = |d: &Document| {
        let position = d.location.position.unwrap();
        (position.document, position.line, d.kind.clone())
    };
    documents(text).iter().map(place).collect()
}

#[test]
fn documents_are_numbered_with_the_empty_ones_and_know_their_line() {
    let pod = "apiVersion: v1\nkind: Pod\n";
    let cases = [
        (String::new(), vec![]),
        ("# nothing\n\n---\n---\nnull\n".to_owned(), vec![]),
        (pod.to_owned(), vec![(1, 1)]),
        (format!("# head\n\n---\n# more\n{pod}"), vec![(1, 5)]),
        (format!("\u{feff}---\n{pod}"), vec![(1, 2)]),
        (format!("%YAML 1.2\n---\n{pod}"), vec![(1, 3)]),
        (format!("{pod}---\n---\n# only\n---\n{pod}"), vec![(1, 1), (4, 7)]),
        (format!("{pod}--- # two\n{pod}---\t\n{pod}"), vec![(1, 1), (2, 4), (3, 7)]),
        (format!("{pod}...\n# between\n{pod}...\n---\n{pod}"), vec![(1, 1), (2, 5), (3, 9)]),
        (format!("{pod}data: |\n  ---\n  ...\ntext: ---x\n---\n{pod}"), vec![(1, 1), (2, 8)]),
        (format!("{pod}---\r\n{}", pod.replace('\n', "\r\n")), vec![(1, 1), (2, 4)]),
        (r#"{"apiVersion": "v1", "kind": "Pod"}"#.to_owned(), vec![(1, 1)]),
    ];
    for (text, expected) in cases {
        let found: Vec<_> = places(&text).into_iter().map(|(document, line, _)| (document, line)).collect();
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn values_are_read_as_kubectl_reads_them() {
    let text = "apiVersion: v1\nkind: X\non: yes\nocts: 010\nbig: 18446744073709551615\nfloat: 1.50\n1: ~\nbase: &base {a: 1, b: 2}\nmerged: {<<: *base, b: 3}\ntext: '010'\nfold: >-\n  a\n  b\n";
    let expected = json!({
        "apiVersion": "v1", "kind": "X", "on": true, "octs": 8, "big": u64::MAX, "float": 1.5, "1": null,
        "base": {"a": 1, "b": 2}, "merged": {"a": 1, "b": 3}, "text": "010", "fold": "a b",
    });
    assert_eq!(documents(text)[0].value(), expected);
    // What JSON allows in a string, and YAML does not.
    let text = "---\n{\"apiVersion\": \"v1\",\r\n \"kind\": \"X\", \"a\": \"\u{7f}\u{9b}\u{ffff}😀\"}";
    assert_eq!(documents(text)[0].value()["a"], "\u{7f}\u{9b}\u{ffff}😀");
    // JSON as `kubectl` prints it: tabs, escapes, a surrogate pair.
    let text = "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"X\",\n\t\"a\\/b\": \"\\ud83d\\ude00\\n\"\n}\n";
    assert_eq!(documents(text)[0].value(), json!({"apiVersion": "v1", "kind": "X", "a/b": "😀\n"}));
}

#[test]
fn lists_are_opened() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n- kind: RoleList\n  apiVersion: rbac.authorization.k8s.io/v1\n  items:\n  - metadata: {name: a}\n  - {kind: Role, apiVersion: x/v2}\n---\nkind: PodList\napiVersion: v1\nitems:\n---\nkind: List\napiVersion: v1\n---\nkind: AllowList\napiVersion: x/v1\n";
    let found: Vec<_> = documents(text)
        .iter()
        .map(|d| (d.location.to_string(), d.api_version.clone(), d.group().to_owned(), d.kind.clone()))
        .collect();
    let expected = [
        ("a.yaml, document 1, line 4", "v1", "", "Pod"),
        ("a.yaml, document 1, line 9", "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io", "Role"),
        ("a.yaml, document 1, line 10", "x/v2", "x", "Role"),
        ("a.yaml, document 4, line 19", "x/v1", "x", "AllowList"),
    ];
    let expected = expected.map(|(a, b, c, d)| (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned()));
    assert_eq!(found, expected);
    assert_eq!(
        documents(text)[1].value(),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"},
        })
    );
}

#[test]
fn a_broken_text_says_where_and_what() {
    let head = "apiVersion: v1\nkind: Pod\n---\n";
    let cases = [
        ("apiVersion: v1\nkind: X\nb:\n  a: 1\n  a: 2\n", 5, "duplicate key \"a\": the last one counts"),
        (
            "{\"apiVersion\": \"v1\", \"kind\": \"X\", \"a\": 1,\n \"a\": 2}",
            2,
            "duplicate key \"a\": the last one counts",
        ),
        ("a:\n  - b\n c: 1\n", 3, "while parsing a block mapping, did not find expected key"),
        ("a: [1, 2\n", 1, "unclosed bracket '['"),
        ("a: b: c\n", 1, "mapping values are not allowed in this context"),
        ("apiVersion: v1\nkind: X\n10-a: x\n10-a: y\n", 4, "duplicate key \"10-a\": the last one counts"),
        ("a: *none\n", 1, "alias references unknown anchor"),
        ("a: {{ .Values.name }}\n", 1, "expected string scalar (is this a template? It must be rendered first)"),
        ("\n~: b\n", 2, "expected a key, found null"),
        ("a: .inf\n", 1, "expected a finite number, found .inf"),
        ("a: 1e999\n", 1, "expected a finite number, found 1e999"),
        ("a: !secret b\n", 1, "unsupported tag `!secret`"),
        ("a: \"\u{1b}[31m\"\n", 1, "unexpected character: `\\u{1b}'"),
        ("- a\n", 1, "expected a Kubernetes object with `apiVersion` and `kind`, found a list"),
        ("plain\n", 1, "expected a Kubernetes object with `apiVersion` and `kind`, found a string"),
        ("\nkind: Pod\n", 2, "expected a Kubernetes object with `apiVersion` and `kind`, found no `apiVersion`"),
        ("apiVersion: v1\n", 1, "expected a Kubernetes object with `apiVersion` and `kind`, found no `kind`"),
        ("apiVersion: 1\nkind: Pod\n", 1, "apiVersion: expected a text that is not empty, found a number"),
        ("apiVersion: v1\nkind:\n", 1, "kind: expected a text that is not empty, found nothing"),
        ("apiVersion: v1\nkind: ''\n", 1, "kind: expected a text that is not empty, found an empty string"),
        ("apiVersion: v1\nkind: List\nitems: {}\n", 1, "items: expected a list, found a mapping"),
        (
            "apiVersion: v1\nkind: List\nitems:\n- \n- {}\n",
            4,
            "expected a Kubernetes object with `apiVersion` and `kind`, found nothing",
        ),
    ];
    for (text, line, message) in cases {
        let problem = &parse("a.yaml", &format!("{head}{text}")).complete().unwrap_err().problems.as_slice()[0].clone();
        let expected = format!("a.yaml, document 2, line {}: {message}", line + 3);
        assert_eq!(problem.to_string(), expected, "{text:?}");
    }
}

#[test]
fn every_document_that_is_no_object_is_reported() {
    assert_eq!(
        error("a: 1\n---\napiVersion: v1\nkind: Pod\n---\nkind: Pod\n"),
        "cannot load the manifests: \
         a.yaml, document 1, line 1: expected a Kubernetes object with `apiVersion` and `kind`, found neither; \
         a.yaml, document 3, line 6: expected a Kubernetes object with `apiVersion` and `kind`, found no `apiVersion`"
    );
    let many = error(&"---\n1\n".repeat(23));
    assert_eq!(many.matches("found a number").count(), 20, "{many}");
    assert!(many.ends_with("; and 3 more"), "{many}");
}

#[test]
fn messages_cannot_steer_a_terminal() {
    let name = "a\u{202e}\n.yaml";
    let problems = parse(name, "1").problems;
    assert!(problems.as_slice()[0].to_string().starts_with("a\\u{202e}\\n.yaml, document 1, line 1: expected"));
    assert!(error("\"\\e\": 1\n\"\\e\": 2\n").ends_with("duplicate key \"\\u{1b}\": the last one counts"));
}

#[test]
fn what_a_text_may_hold_is_bounded() {
    let nested = |levels: usize| -> String {
        let below = (1..levels).fold(String::new(), |mut text, level| {
            writeln!(text, "{}a:", " ".repeat(level)).unwrap();
            text
        });
        format!("apiVersion: v1\nkind: X\nx:\n{below}")
    };
    // The last key's null is no level.
    assert_eq!(documents(&nested(64)).len(), 1);
    let first = |text: &str| parse("a.yaml", text).complete().unwrap_err().problems.as_slice()[0].to_string();
    assert_eq!(first(&nested(65)), "a.yaml, document 1, line 67: expected at most 64 levels of mappings and lists");
    assert_eq!(first(&"[".repeat(100_000)), "a.yaml, document 1, line 1: recursion limit exceeded");

    // Nine times nine times nine …: a few hundred bytes that expand to billions of values.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", [below.as_str(); 9].join(", ")).unwrap();
    }
    assert_eq!(first(&bomb), "a.yaml, document 1, line 4: expected aliases to repeat at most 5000 values");

    // One long text, many times.
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), ["*a"; 5].join(", "));
    assert_eq!(first(&long), "a.yaml, document 1, line 2: expected at most 362175 bytes of text in all values");

    let lists = |depth: usize| {
        let open = "{apiVersion: v1, kind: List, items: [".repeat(depth);
        format!("{open}{{apiVersion: v1, kind: X}}{}", "]}".repeat(depth))
    };
    assert_eq!(documents(&lists(4)).len(), 1);
    assert_eq!(first(&lists(5)), "a.yaml, document 1, line 1: expected at most 4 nested lists");
}

#[test]
fn values_are_counted() {
    let limits = yaml::TextBounds::with_values(5);
    let read = |text: &str| match yaml::read(text, 10, &limits) {
        Ok((nodes, _)) => Ok(nodes.len()),
        Err(fault) => Err((fault.line, fault.message)),
    };
    assert_eq!(read("a: b\nc: d\n"), Ok(1));
    assert_eq!(read("a: b\nc: d\ne: f\n"), Err((13, "expected at most 5 values in one document: split it".to_owned())));
    assert_eq!(
        read("- &a [b, c]\n- *a\n"),
        Err((12, "expected at most 5 values in one document: split it".to_owned()))
    );
}

/// The parser keeps each of these in many times its text.
#[test]
fn what_the_parser_keeps_is_bounded() {
    let first = |text: &str| parse("a.yaml", text).complete().unwrap_err().problems.as_slice()[0].to_string();
    let object = |value: String| format!("apiVersion: v1\nkind: X\na: {value}\n");
    let keys = |count: usize| (0..count).map(|key| format!("k{key}:")).collect::<Vec<_>>().join("\n  ");
    assert_eq!(documents(&object(format!("\n  {}", keys(100_000)))).len(), 1);
    let expected = "a.yaml, document 1, line 4: expected at most 100000 keys in one mapping";
    assert_eq!(first(&object(format!("\n  {}", keys(100_001)))), expected);
    let anchor = |values: usize| object(format!("&a [{}]", vec!["x"; values].join(", ")));
    // The list itself is two of them.
    assert_eq!(documents(&anchor(19_998)).len(), 1);
    assert_eq!(first(&anchor(19_999)), "a.yaml, document 1, line 3: expected anchors of at most 20000 values");
    let merges = |count: usize| object(format!("[{}]", vec!["{<<: {b: 1}}"; count].join(", ")));
    assert_eq!(documents(&merges(1000)).len(), 1);
    assert_eq!(first(&merges(1001)), "a.yaml, document 1, line 3: expected at most 1000 keys `<<` in one document");
    // A list of a cluster has neither.
    let many = Bounds { values: 1_000_000, ..Bounds::SERVER };
    let values = vec!["x"; 100_000].join(", ");
    let read = |start: &str| {
        let Manifests { documents, problems, .. } =
            super::parse("a.yaml", &object(format!("{start}, {values}]")), &many);
        (documents.len(), problems.as_slice().iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(read("[{b: 1}"), (1, vec![]));
    let refused = "a.yaml, document 1, line 3: expected at most 100000 values in one document: split it";
    assert_eq!(read("[{? b : 1}"), (0, vec![refused.to_owned()]));
    let key = |start: &str| {
        let text = object(format!("{{{start}{values}]: 1}}"));
        super::parse("a.yaml", &text, &many).problems.as_slice()[0].to_string()
    };
    assert_eq!([key("["), key("? [")], [refused; 2]);
    assert_eq!(key("\r? ["), refused.replace("line 3", "line 4"));
    assert_eq!(read("[b?, 'Is it? Yes', '${HOST}: 1', '{{ .Host }}:1'"), (1, vec![]));
    assert_eq!(read("[{<<: {b: 1}}"), (0, vec![refused.to_owned()]));
    assert_eq!(read("[{b: 1, b: 2}"), (0, vec![refused.to_owned()]));
}

/// Small objects take many times their text.
#[test]
fn objects_take_at_most_three_times_the_bytes_that_may_be_read() {
    const MIB: usize = 1024 * 1024;
    // 16 MiB of which are always there: room for two small objects is left.
    let bounds = Bounds { total_bytes: 10 * MIB, held_bytes: 46 * MIB - 1500, ..Bounds::SERVER };
    let read = |text: &str| {
        let Manifests { documents, problems, held_bytes, .. } = super::parse("a.yaml", text, &bounds);
        assert!(held_bytes < 2000, "{held_bytes}");
        (documents.len(), problems.as_slice().iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let problem = |place: &str| {
        vec![format!(
            "a.yaml, document {place}: expected at most 48234496 bytes of memory for the objects of all manifests"
        )]
    };
    let pod = "apiVersion: v1\nkind: Pod\n";
    let two = format!("---\n--- # one\n\t\n---\n{pod}...\n# two\n---\r\n{pod}---\n---\n");
    assert_eq!(read(&two), (2, vec![]));
    assert_eq!(read(&format!("{two}{pod}---\n{pod}")), (2, problem("6, line 13")));
    let list = |items: &str| format!("apiVersion: v1\nkind: PodList\nitems: [{items}]\n");
    assert_eq!(read(&list("{}")), (1, vec![]));
    assert_eq!(read(&list("{}, {}")), (0, problem("1, line 1")));
    // An object can take more than a small one does.
    let text = |bytes: usize| format!("{pod}a: {}\n", "x".repeat(bytes));
    assert_eq!(read(&text(900)), (1, vec![]));
    assert_eq!(read(&text(1000)), (0, problem("1, line 1")));
    // Values that aliases repeat count too.
    let repeated = |times: usize| format!("{pod}a: &a {}\nb: [{}]\n", "x".repeat(100), vec!["*a"; times].join(", "));
    assert_eq!(read(&repeated(5)), (1, vec![]));
    assert_eq!(read(&repeated(10)), (0, problem("1, line 1")));
}

#[test]
fn an_object_has_as_many_values_as_can_be_parsed_at_once() {
    let bounds = Bounds { values: usize::MAX, ..Bounds::SERVER };
    let first = |values: usize| {
        let text = format!("apiVersion: v1\nkind: X\na: [{}]\n", vec!["{}"; values].join(","));
        let Manifests { documents, problems, .. } = super::parse("a.yaml", &text, &bounds);
        (documents.len(), problems.as_slice().first().map(ToString::to_string))
    };
    assert_eq!(first(249_997), (1, None));
    let problem = "a.yaml, document 1, line 1: expected at most 250000 values in one object";
    assert_eq!(first(249_998), (0, Some(problem.to_owned())));
}

#[test]
fn many_problems_are_counted_and_the_rest_is_read() {
    let text = format!("{}apiVersion: v1\nkind: Pod\n---\n{}", "---\n[\n".repeat(300), "a: 1\n---\n".repeat(150));
    let Manifests { documents, problems, foreign, .. } =
        parse("a.yaml", &text.replacen("[\n---\n[", "[\n---\nx: [", 1));
    let counts =
        |found: &Diagnostics| (found.as_slice().len(), found.as_slice().iter().map(|one| one.more).sum::<usize>());
    assert_eq!((documents.len(), counts(&problems), counts(&foreign)), (0, (100, 200), (100, 50)));
    let text = format!("{text}---\napiVersion: v1\nkind: Pod\n");
    assert_eq!(parse("a.yaml", &text).documents.len(), 1);
}

#[test]
fn lines_of_fields_are_known() {
    let text = "# head\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: X\n  a/b:\n    - 1\n    - c~d:\n        e: x\n";
    let document = &documents(text)[0];
    let cases = [
        ("", 5),
        ("/kind", 6),
        ("/a~1b", 7),
        ("/a~1b/0", 8),
        ("/a~1b/1/c~0d", 9),
        ("/a~1b/1/c~0d/e", 10),
        ("/a~1b/1/c~0d/missing/e", 9),
        ("/a~1b/7", 7),
        ("/missing", 5),
    ];
    for (pointer, line) in cases {
        assert_eq!(document.line_of(pointer), line, "{pointer}");
    }
}

#[test]
fn fields_say_where_they_are_wrong() {
    let read = |rest: &str| {
        let document = &documents(&format!("apiVersion: v1\nkind: ConfigMap\n{rest}"))[0];
        document.read::<ConfigMap>().map_err(|problem| problem.to_string())
    };
    let unknown = "unknown field, `kubectl explain configmap` lists those that exist";
    for (rest, problem) in [
        ("data:\n  a: x\n  b/c: 1\n", "line 5: data[b/c]: expected a string, found a number"),
        ("data:\n- x\n", "line 3: data: expected a mapping, found a list"),
        ("data: {}\ndate: ''\n", &format!("line 4: date: {unknown}")),
    ] {
        assert_eq!(read(rest).unwrap_err(), format!("a.yaml, document 1, {problem}"), "{rest}");
    }
    assert_eq!(read("metadata: {nickname: a}\ndata:\ndate: ~\n").unwrap().data, None);
}

#[test]
fn each_document_can_be_read_alone() {
    let text = "\
# head
apiVersion: v1
kind: A
---
a: [
---
kind: {{ .Values.kind }}
---
apiVersion: v1
kind: B
spec:
  field: x
...
---
kind: C
";
    let Manifests { documents, problems, .. } = parse("a.yaml", text);
    let kinds: Vec<_> = documents.iter().map(|found| (found.kind.as_str(), found.location.to_string())).collect();
    assert_eq!(kinds, [("A", "a.yaml, document 1, line 2".to_owned()), ("B", "a.yaml, document 4, line 9".to_owned())]);
    assert_eq!(documents[1].line_of("/spec/field"), 12);
    let problems: Vec<_> = problems.as_slice().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "a.yaml, document 2, line 5: unclosed bracket '['",
            "a.yaml, document 3, line 7: expected string scalar (is this a template? It must be rendered first)",
            "a.yaml, document 5, line 15: expected a Kubernetes object with `apiVersion` and `kind`, found no `apiVersion`",
        ]
    );
}

#[test]
fn of_two_keys_the_last_has_the_value_and_the_lines() {
    let pod = |name: &str| format!("- apiVersion: v1\n  kind: Pod\n  name: {name}\n");
    let list = |first: &str, last: &str| format!("apiVersion: v1\nkind: List\nitems:{first}items:{last}");
    let [one, two] = ["a", "b"].map(|name| format!("\n{}", pod(name)));
    let read = |text: &str| {
        let Manifests { documents, problems, .. } = parse("a.yaml", text);
        let place = |document: &Document| (document.value()["name"].to_string(), document.line_of("/name"));
        let problems: Vec<String> = problems.as_slice().iter().map(ToString::to_string).collect();
        (documents.iter().map(place).collect::<Vec<_>>(), problems)
    };
    let twice =
        |line: u64| vec![format!("a.yaml, document 1, line {line}: duplicate key \"items\": the last one counts")];
    let at = |name: &str, line: u64| (format!("{name:?}"), line);
    assert_eq!(read(&list(" []\n", &two)), (vec![at("b", 7)], twice(4)));
    assert_eq!(read(&list(&one, " []\n")), (vec![], twice(7)));
    assert_eq!(read(&list(&one, &format!("{two}{}", pod("c")))), (vec![at("b", 10), at("c", 13)], twice(7)));
    // A key of its own counts before a merged one, wherever it stands.
    let merged = format!("<<: {{items: [1, 2]}}\nitems:{two}");
    assert_eq!(read(&format!("apiVersion: v1\nkind: List\n{merged}")), (vec![at("b", 7)], vec![]));
    let json = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [],\n \"items\": [\n{\"apiVersion\": \"v1\", \"kind\": \"X\",\n\"name\": 1,\n\"name\": 2}]}";
    assert_eq!(read(json), (vec![("2".to_owned(), 5)], twice(2)));
}

#[test]
fn a_list_takes_about_as_much_memory_as_its_text() {
    let pod = "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: web\n    labels: {app: web, tier: front}\n  spec:\n    containers:\n    - name: web\n      image: web:1\n      env:\n      - {name: A, value: b}\n";
    let text = format!("apiVersion: v1\nkind: List\nitems:\n{}", pod.repeat(1000));
    let held = |document: &Document| {
        let NodeContents { json, lines } = &document.node.contents;
        json.capacity() + lines.capacity() * 4
    };
    let held: usize = documents(&text).iter().map(held).sum();
    assert!(held < text.len() * 3 / 2, "{held} bytes of {}", text.len());
}

#[test]
fn an_object_is_no_larger_than_the_api_server_takes() {
    let config = |bytes: usize| format!("apiVersion: v1\nkind: ConfigMap\ndata: {{a: {}}}\n", "x".repeat(bytes));
    assert_eq!(documents(&config(3 * 1024 * 1024 - 60)).len(), 1);
    assert_eq!(
        error(&config(3 * 1024 * 1024)),
        "cannot load the manifests: a.yaml, document 1, line 1: expected an object of at most 3145728 bytes, as the API server does"
    );
}
