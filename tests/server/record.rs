//! The track record in `docs/measurements.md`: each fault that was found, and the tests that find it again, which must be there.
//! `UPDATE_SNAPSHOTS=1 cargo test --test server record` writes it.

use std::{collections::BTreeSet, env, fs, path::Path};

const PAGE: &str = "docs/measurements.md";
const BEGIN: &str = "<!-- record: written by `UPDATE_SNAPSHOTS=1 cargo test --test server record` -->";
const END: &str = "<!-- record: end -->";

/// The folders in which a folder of files is a case, and its name that of the test.
const CASES: [&str; 4] = [
    "tests/golden",
    "crates/kubectl-gmsa/tests/cli",
    "crates/kubectl-gmsa/tests/cli/recorded",
    "crates/kubectl-gmsa/tests/cli/simulated",
];

/// A fault, and what finds it again: functions, folders of cases, or recipes with the word that picks an attack.
type Fault = (&'static str, &'static [&'static str]);

const RECORD: &[(&str, &[Fault])] = &[
    (
        "Killed at 128 MiB",
        &[
            (
                "one body of 8 MiB, parsed whole: 508 MiB",
                &["the_largest_bodies_are_parsed_within_one_and_a_half_times_their_size"],
            ),
            (
                "half handshakes, and answers that nobody reads",
                &["a_connection_whose_answer_is_not_read_makes_room", "just attacks halves"],
            ),
            ("24 made-up names on 800 connections", &["an_account_has_a_share_and_a_queue_of_its_own"]),
            (
                "credential specs of 1.4 MB at the start",
                &[
                    "contents_that_no_pod_can_carry_are_known_to_be_too_long_and_not_read",
                    "pages_shrink_where_objects_are_large",
                ],
            ),
            ("live reads of large objects, uncounted", &["a_large_answer_takes_its_bytes_of_the_budget"]),
            ("what was parsed was larger than what was read", &["what_is_kept_is_never_larger_than_what_was_read"]),
        ],
    ),
    (
        "Slow or starved",
        &[
            ("names in a Deployment: quadratic time", &["twice_the_body_costs_at_most_twice_as_much"]),
            ("unread `/metrics` starved the probes", &["scrapes_that_nobody_reads_keep_no_probe_out"]),
            (
                "silent sockets starved probes and reviews",
                &[
                    "silent_connections_to_the_admin_port_keep_no_probe_out",
                    "connections_without_a_request_keep_no_client_out",
                ],
            ),
            ("announced lengths took the memory of others", &["announced_lengths_take_nothing"]),
            (
                "many honest pods at once: refused",
                &["over_its_limit_of_connections_a_client_waits_and_answers_end_theirs", "just storm"],
            ),
            ("warnings took the calls of decisions", &["what_is_asked_for_warnings_takes_nothing_from_decisions"]),
            ("unknown names held known ones up", &["a_thousand_reviews_of_unknown_names_hold_no_other_up"]),
            ("names of pods filled the log", &["what_clients_send_cannot_fill_the_log"]),
        ],
    ),
    (
        "The watch and the API server",
        &[
            ("silence was taken for a fault: live reads for all", &["eight_quiet_minutes_cost_no_read_and_no_list"]),
            (
                "a stalled watch: old contents without end",
                &["what_a_stalled_watch_withholds_is_found_within_seventy_five_seconds"],
            ),
            (
                "etcd restored: contents that no longer exist",
                &["what_a_restored_etcd_does_not_have_or_has_in_an_older_version_goes_within_ten_minutes"],
            ),
            (
                "short time-outs ended the connection of the watch",
                &["calls_that_time_out_do_not_break_their_connection", "watches_have_a_connection_that_no_call_shares"],
            ),
            ("a rotated token was used too late", &["a_new_token_in_its_file_is_that_of_the_next_call"]),
        ],
    ),
    (
        "Certificates and installation",
        &[
            (
                "a change of the source refused pods",
                &[
                    "the_steps_keep_what_old_pods_are_trusted_by",
                    "changes_that_would_leave_pods_refused_are_not_rendered",
                ],
            ),
            (
                "Secret and configuration lost: served, not trusted",
                &["what_is_served_stays_trusted_where_secret_and_configuration_are_lost"],
            ),
            ("a removed client CA stayed trusted", &["the_authority_of_clients_is_read_again_when_it_changes"]),
            (
                "deleting the manifest deleted credential specs",
                &["the_manifest_comes_and_goes_and_every_credential_spec_stays"],
            ),
            ("TCP health checks raised a critical alert", &["health_checks_by_tcp_are_no_failed_handshakes"]),
            ("a release without its artefacts", &["a_release_is_published_with_everything_in_it"]),
        ],
    ),
    (
        "Wrong answers",
        &[
            ("a trial showed one denial per round", &["without_enforcement_every_denial_is_a_warning"]),
            ("`check`: kinds and near misses unseen", &["check-kinds", "check-near-misses"]),
            ("`check`: a grant for what a slip had caused", &["check-slips"]),
            ("`check`: Windows builds taken as equal or not", &["check-builds"]),
            ("`check --live`: a missing right as a refusal", &["check-live-unread"]),
            ("`doctor`: well although validation was broken", &["the_validating_webhook_is_tested_by_itself"]),
            ("`doctor`, `why`: `pass` without having asked", &["a-permission-that-was-not-asked"]),
            ("`account lint`: everybody may, and nothing said", &["account-retrievers"]),
            ("`verify`: the node's ticket, a healthy IIS", &["each_cause_is_found_in_its_transcript"]),
            ("`explain`: 4 of 18 messages known", &["every_message_is_known_with_the_word_that_helps"]),
            ("names that nothing has: \"all is well\"", &["outdated-nowhere", "can-nobody", "who-can-nothing"]),
        ],
    ),
    (
        "Hostile input to the tools",
        &[
            ("a cell of 70,000 characters ended `who-can`", &["a_cell_of_any_length_is_cut_before_it_is_aligned"]),
            ("an owner that a pod invented was restarted", &["owners-that-pods-make-up"]),
            (
                "names from the directory as code in commands",
                &["nothing_from_a_directory_is_code_or_forges_a_line", "powershell_doubles_every_quote_that_it_knows"],
            ),
            ("a password for a host that forged DNS named", &["without_a_person_a_workstation_gets_no_password"]),
            ("a directory that took all memory of a desk", &["what_takes_more_memory_than_bytes_costs_more"]),
        ],
    ),
];

#[test]
fn every_test_of_the_track_record_is_there() {
    let mut functions = BTreeSet::new();
    for folder in ["src", "crates", "tests"] {
        collect(Path::new(folder), &mut functions);
    }
    let attacks = fs::read_to_string("benches/attacks/cases.rs").unwrap();
    let recipes = fs::read_to_string("justfile").unwrap();
    let there = |name: &str| match name.strip_prefix("just ") {
        Some(command) => {
            let (recipe, word) = command.split_once(' ').unwrap_or((command, ""));
            recipes.contains(&format!("\n{recipe} ")) && attacks.contains(word)
        }
        None => functions.contains(name) || CASES.iter().any(|folder| Path::new(folder).join(name).is_dir()),
    };
    let named = RECORD.iter().flat_map(|(_, faults)| *faults).flat_map(|(_, tests)| *tests);
    let lost: Vec<_> = named.filter(|name| !there(name)).collect();
    assert_eq!(lost, [&""; 0]);
}

#[test]
fn the_page_has_the_track_record() {
    let mut rows = vec!["| Fault | Found again by |\n|---|---|\n".to_owned()];
    for (group, faults) in RECORD {
        rows.push(format!("| **{group}** | |\n"));
        rows.extend(faults.iter().map(|(fault, tests)| format!("| {fault} | `{}` |\n", tests.join("`, `"))));
    }
    let table = rows.concat();
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (stated, after) = rest.split_once(END).unwrap();
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(PAGE, format!("{before}{BEGIN}\n\n{table}\n{END}{after}")).unwrap();
        return;
    }
    assert_eq!(stated.trim(), table.trim());
}

/// The names of all functions below a folder.
fn collect(folder: &Path, functions: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, functions);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let names = source.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            functions.extend(names.map(str::to_owned));
        }
    }
}
