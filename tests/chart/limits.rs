//! Numbers that the chart repeats because it cannot ask the program for them.

use crate::{files::objects, helm::Helm};

#[test]
fn the_guard_takes_as_many_rights_as_the_webhook() {
    let guard = ["--set", "guard.enabled=true", "--show-only", "templates/guard.yaml"];
    let rendered = Helm::new().template(["--namespace", "windows"].into_iter().chain(guard));
    let policy = objects(&rendered).remove(0);
    let limit = gmsa_core::admission::MAX_SPECS_PER_POD;
    let validations = policy["spec"]["validations"].as_array().unwrap();
    let bound = validations.iter().find(|one| one["expression"] == format!("variables.rights{limit}.size() == 0"));
    assert_eq!(bound.unwrap()["message"], format!("more than {limit} different GMSA cred specs in one pod"));
    let checks = validations.iter().filter(|one| one["reason"] == "Forbidden");
    assert_eq!(checks.count(), limit);
}
