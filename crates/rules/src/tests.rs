//! What is said about errors as the API server, Windows, CCG and the kubelet word them.

use std::collections::{BTreeMap, BTreeSet};

use gmsa_core::{
    admission::{Denial, Failure, operation::Operation, pod::Pod},
    credspec::{Contents, SpecName, Verb, compare::compare},
    quote::Quoted,
};

use super::{reading::Says, text::MAX_FOUND, *};

mod messages;

/// The words of the table by their index, without those of remedies, which stand for each other.
pub fn patterns() -> BTreeMap<usize, &'static str> {
    let patterns = reading::patterns().enumerate();
    let patterns = patterns.filter(|(_, pattern)| !matches!(pattern.says, Says::OfRemedy(..)));
    patterns.map(|(index, pattern)| (index, pattern.words)).collect()
}

/// The statuses, events and exit codes of the table as an explanation begins, each with its rule; no rule where it is no fault.
pub fn numbers() -> BTreeSet<(&'static str, String)> {
    let no_faults = GOOD.iter().flat_map(|(words, _)| words.iter().map(|words| ("", *words)));
    let all = words().map(|(rule, words)| (rule.id, words)).chain(no_faults);
    let numbers = all.flat_map(|(rule, words)| {
        let shown: Vec<String> = match words {
            Words::Codes(names) | Words::StartCodes(names) | Words::RunningCodes(names) => {
                names.iter().map(|name| (*name).to_owned()).collect()
            }
            Words::Event(source, numbers) => {
                numbers.iter().map(|number| format!("event {number} of {source}")).collect()
            }
            Words::Exit(codes) => codes.iter().map(|code| format!("exit code {code}")).collect(),
            _ => Vec::new(),
        };
        shown.into_iter().map(move |shown| (rule, shown))
    });
    numbers.collect()
}

/// Each explanation in a line: what was found, and the rules by phase.
fn explained(text: &str) -> Vec<String> {
    let line = |Explanation { found, meaning }: Explanation| match meaning {
        Meaning::Fault(rules) => {
            let one = |(phase, rule): &(Option<Phase>, &Rule)| match phase {
                Some(phase) => format!("{phase:?} {}", rule.id),
                None => rule.id.to_owned(),
            };
            let rules: Vec<String> = rules.iter().map(one).collect();
            format!("{found} = {}", rules.join(", "))
        }
        Meaning::NoFault(what) | Meaning::Unknown(what) => format!("{found} = {what}"),
    };
    explain(text).0.into_iter().map(line).collect()
}

#[test]
fn a_status_alone_is_explained_in_both_phases() {
    let both = "Start node-credentials, Running no-secure-channel";
    for (status, found) in [
        ("3489792023", "0xd0020017: RPC_NT_SERVER_UNAVAILABLE (NTSTATUS 0xc0020017)"),
        ("0xC0020017", "0xc0020017: RPC_NT_SERVER_UNAVAILABLE"),
        ("0x800706ba", "0x800706ba: RPC_S_SERVER_UNAVAILABLE (Win32 1722)"),
        ("1722", "1722: RPC_S_SERVER_UNAVAILABLE"),
        ("RPC_S_SERVER_UNAVAILABLE", "1722: RPC_S_SERVER_UNAVAILABLE"),
    ] {
        assert_eq!(explained(status), [format!("{found} = {both}")]);
    }
    assert_eq!(
        explained("0xc0370101"),
        ["0xc0370101: HCS_E_IMAGE_MISMATCH (HRESULT 0x80370101) = Start image-mismatch"]
    );
    assert_eq!(explained("0x5"), ["5: ERROR_ACCESS_DENIED = Running logon-denied"]);
    assert_eq!(
        explained("5"),
        [
            "5: ERROR_ACCESS_DENIED = 5 has several meanings: the exit code of a program, or a code of Windows (`net helpmsg 5`); in Kerberos it is \
          KDC_ERR_S_OLD_MAST_KVNO. Give the words beside it, such as `System error 5`."
        ]
    );
    assert_eq!(explained("0"), ["0: success = The step succeeded."]);
    assert_eq!(
        explained(" 1398\n0x57\n"),
        ["1398: ERROR_TIME_SKEW = clock-skew", "87: ERROR_INVALID_PARAMETER = Start start-parameter"]
    );
}

#[test]
fn a_status_that_is_not_known_is_decoded_and_not_guessed() {
    let node = "The node has the rest: the logs Microsoft-Windows-Containers-CCG/Admin and Microsoft-Windows-Hyper-V-Compute-Admin, \
                whose messages `kubectl gmsa explain` reads.";
    let decoded = |text: &str, found: &str, what: &str, how: &str| {
        assert_eq!(explained(text), [format!("{found} = {what}The cause is unknown. {how} {node}")]);
    };
    let certutil = |code: &str| format!("`certutil -error {code}` on Windows says what it means.");
    decoded("0x80004001", "0x80004001: E_NOTIMPL", "It is an HRESULT of COM (facility 0). ", &certutil("0x80004001"));
    decoded("-2147467263", "0x80004001: E_NOTIMPL", "It is an HRESULT of COM (facility 0). ", &certutil("0x80004001"));
    decoded(
        "3489660980",
        "0xd0000034: STATUS_OBJECT_NAME_NOT_FOUND (NTSTATUS 0xc0000034)",
        "It is an NTSTATUS (facility 0). ",
        &certutil("0xc0000034"),
    );
    decoded("0xd0000fff", "0xd0000fff: an NTSTATUS (NTSTATUS 0xc0000fff)", "", &certutil("0xc0000fff"));
    decoded(
        "STATUS_CANCELLED",
        "0xc0000120: STATUS_CANCELLED",
        "It is an NTSTATUS (facility 0). ",
        &certutil("0xc0000120"),
    );
    decoded(
        "0x80070570",
        "0x80070570: ERROR_FILE_CORRUPT (Win32 1392)",
        "It is a Win32 code. ",
        "`net helpmsg 1392` on Windows says what it means.",
    );
    decoded(
        "0x3c",
        "60: ERROR_BAD_REM_ADAP",
        "It is a Win32 code. ",
        "`net helpmsg 60` on Windows says what it means; in Kerberos it is KRB_ERR_GENERIC.",
    );
    // In a text, what has the form of a failure counts, and nothing beside a cause.
    decoded(
        "layer 0x80070570 of it",
        "0x80070570: ERROR_FILE_CORRUPT (Win32 1392)",
        "It is a Win32 code. ",
        "`net helpmsg 1392` on Windows says what it means.",
    );
    assert_eq!(explained("layer 0x570 of 60"), Vec::<String>::new());
    assert_eq!(explained("KRB_AP_ERR_SKEW 0x80070570"), ["\"krb_ap_err_skew\" = clock-skew"]);
    assert_eq!(explained("the pod is fine"), Vec::<String>::new());
    assert_eq!(explained(""), Vec::<String>::new());
}

#[test]
fn what_is_no_error_of_these_is_not_explained() {
    for text in [
        "deployment \"web\" successfully rolled out",
        "level=INFO msg=\"reviewed\" pod=web-1 duration=1.2ms code=200",
        "panic: runtime error: invalid memory address or nil pointer dereference [signal SIGSEGV: code=0x1 addr=0x57 pc=0x7f12]",
        "java.lang.NullPointerException: Cannot invoke \"String.length()\" because \"s\" is null",
        "Error: ENOENT: no such file or directory, open 'C:\\app\\config.json'",
        "System.NullReferenceException: Object reference not set to an instance of an object.",
        "Warning: resource pods/web is missing the annotation which is required by kubectl apply",
        "replicaset web-85c0ffee scaled up from 0 to 1, 0x5 of 0x57",
        "Normal  Scheduled  9s  default-scheduler  Successfully assigned shop/web to win-1",
        "HTTP/1.1 500 Internal Server Error",
        "ERROR 2003 (HY000): Can't connect to MySQL server on 'db' (111)",
        "ERROR 1045 (28000): Access denied for user 'app'@'10.0.0.1' (using password: YES)",
        "redis.exceptions.ConnectionError: Error 111 connecting to redis:6379. Connection refused.",
        "Error 104 while reading from socket: (104, 'Connection reset by peer')",
    ] {
        assert_eq!(explained(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn events_of_a_node_are_explained() {
    for (event, rules) in [
        (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: hcs::CreateComputeSystem 5bd1: winapi error #3489792023: unknown",
            &["node-credentials"][..],
        ),
        (
            "Failed to setup the external credentials for Container 'a7d2': The RPC server is unavailable. (0xC0020017).",
            &["node-credentials"],
        ),
        (
            "failed to create shim task: failed to generate container credential guard instance: The RPC server is unavailable.: unknown",
            &["node-credentials"],
        ),
        (
            "hcs::CreateComputeSystem 1: The container operating system does not match the host operating system.: unknown",
            &["image-mismatch"],
        ),
        (
            "container 1310 encountered an error during CreateProcess: failure in a Windows system call: The user name or password is incorrect. (0x52e)",
            &["start-logon"],
        ),
        ("hcs::System::CreateProcess 77: The system cannot find the file specified.: unknown", &["start-command"]),
        ("hypervisor isolated containers with v2 HCS schema do not support GMSA", &["hyper-v"]),
        ("Container Credential Guard failed to parse the credential spec. Error: 0x8007000d", &["contents-rejected"]),
        (
            "Container Credential Guard failed to instantiate the plugin: {C}. Error: The server process could not be started because the configured identity is incorrect. Check the username and password.",
            &["plugin-not-started"],
        ),
        (
            "Container Credential Guard failed to fetch credentials from the plug-in: {C}. Error: Access is denied.",
            &["plugin-failed"],
        ),
        (
            "Container Credential Guard failed to fetch gmsa credentials for WebApp1$ using plugin {C}. Error reason: The specified domain either does not exist or could not be contacted.",
            &["node-no-domain-controller"],
        ),
        (
            "Container Credential Guard failed to parse the plug-in GUID in the credential spec. Error: 0x800401f3",
            &["plugin-guid"],
        ),
    ] {
        let mut found = Vec::new();
        for Explanation { meaning, .. } in explain(event).0 {
            let Meaning::Fault(rules) = meaning else { panic!("{event}: {meaning:?}") };
            found
                .extend(rules.into_iter().filter(|(phase, _)| *phase != Some(Phase::Running)).map(|(_, rule)| rule.id));
        }
        assert_eq!(found, rules, "{event}");
        assert_eq!(recognize(event, Phase::Start).map(|rule| rule.id), rules.first().copied());
    }
}

#[test]
fn what_succeeded_is_no_fault() {
    assert_eq!(
        explained("Container Credential Guard instantiated the plugin: {3C0BED28-38FC-42A9-A6AC-967A4839DF61}"),
        ["\"credential guard instantiated the plugin\" = The plugin is registered on the node and was started."]
    );
    let fetched = "Container Credential Guard fetched gmsa credentials for WebApp1$ using plugin: {C}";
    assert_eq!(explained(fetched), ["\"fetched gmsa credentials for\" = The node has the password of the account."]);
    assert_eq!(recognize(fetched, Phase::Start), None);
}

#[test]
fn answers_of_commands_are_explained() {
    assert_eq!(
        explained("I_NetLogonControl failed: Status = 1722 0x6ba RPC_S_SERVER_UNAVAILABLE"),
        ["1722: RPC_S_SERVER_UNAVAILABLE = Running no-secure-channel"]
    );
    assert_eq!(
        explained("klist failed with 0xc000018b/-1073741429: The SAM database"),
        ["0xc000018b: STATUS_NO_TRUST_SAM_ACCOUNT = trust-failed"]
    );
    assert_eq!(
        explained("Trust Verification Status = 5 0x5 ERROR_ACCESS_DENIED"),
        ["5: ERROR_ACCESS_DENIED = Running logon-denied"]
    );
    assert_eq!(explained("System error 53 has occurred."), ["\"system error 53 has occurred\" = share-name"]);
}

#[test]
fn a_text_without_end_gives_a_few_explanations() {
    let numbers = |start: &str| {
        let numbers: Vec<String> = (0..50_000_u32).map(|number| format!("{start}{number:x}")).collect();
        numbers.join(" ")
    };
    // Looking at the whole text for each number would never end.
    for text in [numbers("0x"), format!("kerberos {}", numbers("error code: 0x"))] {
        let (found, _) = explain(&text);
        assert!(!found.is_empty() && found.len() <= MAX_FOUND, "{}", found.len());
    }
    // Neither would one that looked for the end of each colour in all of the text.
    assert_eq!(explain(&"\u{1b}[".repeat(500_000)).0, Vec::new());
}

/// A denial of each variant. Their quotations look like other denials.
fn denials() -> Vec<Denial> {
    let pod = Pod::from_json(r#"{"metadata": {"name": "cred spec x does not exist"}}"#).unwrap();
    let slot = || pod.slots().next().unwrap().to_string();
    let spec = || SpecName::parse("webapp1").unwrap();
    let failure = || Failure::new("the API server answered 403: cred spec x does not exist");
    let service_account = || "web".to_owned();
    let quoted = || Quoted::new("is not authorized to `use`");
    let contents = Contents::of(&serde_json::json!({"a": 1}).as_object().unwrap().clone());
    let difference = compare("{}", &contents).unwrap_err();
    vec![
        Denial::UnexpectedKind { expected: "Pod", kind: quoted() },
        Denial::CredentialSpecWrong("does not have a credspec key".to_owned()),
        Denial::UnexpectedOperation(Operation::Delete),
        Denial::NoObject { field: "object", operation: Operation::Create },
        Denial::InvalidNamespace(quoted()),
        Denial::InvalidSpecName { name: quoted(), place: slot() },
        Denial::InvalidServiceAccount(quoted()),
        Denial::TooManySlots,
        Denial::TooManySpecs,
        Denial::PatchTooLarge,
        Denial::SpecMissing(spec()),
        Denial::SpecUnusable(spec()),
        Denial::SpecUnreadable { spec: spec(), failure: failure() },
        Denial::ContentsWithoutName(slot()),
        Denial::NotAuthorized {
            service_account: service_account(),
            verb: Verb::Use,
            spec: spec(),
            reason: Some("cred spec x does not exist".to_owned()),
        },
        Denial::AuthorizationFailed {
            service_account: service_account(),
            verb: Verb::Use,
            spec: spec(),
            failure: failure(),
        },
        Denial::ContentsDiffer { slot: slot(), spec: spec(), difference },
        Denial::NameWithoutContents { slot: slot(), spec: spec() },
        Denial::Modified { what: "name", slot: slot() },
        Denial::TicketsImpossible(Verb::Use, format!("{} mounts volume \"gmsa-tickets-token\"", slot())),
        Denial::TicketsNotEnabled(Verb::Use),
        Denial::TicketsUnavailable(Verb::Use, failure()),
    ]
}

#[test]
fn each_denial_is_recognized() {
    let denials = denials();
    let rules: Vec<&Rule> = denials.iter().map(Denial::rule).collect();
    assert_eq!(rules, Denial::RULES);
    for denial in denials {
        let event = format!("Error creating: admission webhook \"gmsa\" denied the request: {denial}");
        for text in [&denial.to_string(), &event] {
            assert_eq!(refusal(text).id, denial.reason(), "{text}");
        }
        for text in [denial.to_string()].into_iter().chain(pasted(&event)) {
            assert_eq!(first(&text), Some(denial.reason()), "{text}");
        }
    }
}

/// A message as people paste it.
fn pasted(message: &str) -> Vec<String> {
    let escaped = serde_json::json!(message).to_string();
    let words: Vec<&str> = message.split(' ').collect();
    let lines = |start: &str| {
        let lines: Vec<String> = words.chunks(5).map(|line| format!("{start}{}", line.join(" "))).collect();
        lines.join("\n")
    };
    vec![
        message.to_owned(),
        format!("Error from server (Forbidden): error when creating \"x.yaml\": {message}"),
        format!("Warning: {message}"),
        format!("Error: INSTALLATION FAILED: 1 error occurred:\n\t* {message}\n"),
        format!(
            "  Normal   Scheduled     5m                  default-scheduler      assigned\n  Warning  FailedCreate  10s (x14 over 51s)  replicaset-controller  {message}"
        ),
        format!("{{\"kind\": \"Event\", \"reason\": \"FailedCreate\", \"message\": {escaped}}}"),
        format!("{{\"message\": {}}}", escaped.replace("\\\"", "\\u0022").replace('\'', "\\u0027")),
        format!("E1125 07:00:00.000000       1 replica_set.go:557] \"Unhandled Error\" err={escaped} logger=\"x\""),
        format!("    message: '{}'\n    reason: FailedCreate", message.replace('\'', "''")),
        lines("      "),
        lines("> "),
        lines("│ "),
    ]
}

/// The first rule that a text is explained by.
fn first(text: &str) -> Option<&'static str> {
    explain(text).0.into_iter().find_map(|found| match found.meaning {
        Meaning::Fault(rules) => rules.first().map(|(_, rule)| rule.id),
        Meaning::NoFault(_) | Meaning::Unknown(_) => None,
    })
}

#[test]
fn every_rule_has_a_name_of_its_own_and_two_sentences() {
    assert_eq!(all().map(|rule| rule.id).collect::<BTreeSet<_>>().len(), all().count());
    for rule in all() {
        assert!(rule.id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", rule.id);
        assert!(rule.title.ends_with('.') && rule.remedy.ends_with('.'), "{}", rule.id);
    }
}

#[test]
fn words_stand_for_one_word_or_for_anything() {
    for (text, rule) in [
        ("cred spec a does not exist", "spec-missing"),
        ("cred spec  does not exist", "pod-refused"),
        ("cred spec a b does not exist", "pod-refused"),
        ("of the cred spec, cred spec a does not exist", "spec-missing"),
        ("error looking up service account shop/web: serviceaccount \"web\" not found", "service-account-missing"),
        ("exceeded quota: pods", "pod-refused"),
        ("the pod is fine", "pod-refused"),
    ] {
        assert_eq!(refusal(text).id, rule, "{text}");
    }
    assert!(lacks_right("pods is forbidden: User \"a\" cannot create resource \"pods\" in API group \"\""));
    assert!(!lacks_right("exceeded quota"));
}
