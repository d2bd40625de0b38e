//! The chart's README, made from the comments of its values.
//!
//! A comment is above its key, at the same depth. A key without one belongs to the nearest key above it that has one, and every key
//! must have one: a value without an explanation cannot be used.

use std::fmt::Write;

use serde_json::Value;

/// A key that has a comment.
pub struct Entry {
    pub path: Vec<String>,
    pub comment: String,
}

/// The README for these values: `head`, and a table.
pub fn of(head: &str, values: &str) -> String {
    let defaults: Value = serde_saphyr::from_str(values).unwrap();
    let entries = entries(values);
    assert_explained(&defaults, &mut Vec::new(), &entries);
    let mut table = String::new();
    for Entry { path, comment } in &entries {
        let default = path.iter().fold(&defaults, |value, key| &value[key]);
        let default = match default {
            Value::Object(map)
                if entries.iter().any(|entry| entry.path.len() > path.len() && entry.path.starts_with(path)) =>
            {
                assert!(!map.is_empty());
                String::new()
            }
            default => format!("`{default}`"),
        };
        writeln!(table, "| `{}` | {default} | {} |", path.join("."), comment.replace('|', "\\|")).unwrap();
    }
    format!("{head}{table}")
}

/// The keys that have a comment, in their order.
pub fn entries(values: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut parents: Vec<String> = Vec::new();
    let mut comment = String::new();
    for line in values.lines() {
        let text = line.trim_start();
        let depth = (line.len() - text.len()) / 2;
        if let Some(words) = text.strip_prefix("# ") {
            if !comment.is_empty() {
                comment.push(' ');
            }
            comment.push_str(words);
        } else if let Some((key, _)) = text.split_once(':').filter(|(key, _)| !key.contains(char::is_whitespace)) {
            parents.truncate(depth);
            parents.push(key.to_owned());
            if !comment.is_empty() {
                entries.push(Entry { path: parents.clone(), comment: std::mem::take(&mut comment) });
            }
        } else {
            assert!(text.is_empty() || text.starts_with("- "), "a line that is no comment and no key: {line}");
            assert!(comment.is_empty(), "a comment above no key: {comment}");
        }
    }
    entries
}

fn assert_explained(value: &Value, path: &mut Vec<String>, entries: &[Entry]) {
    if entries.iter().any(|entry| entry.path == *path) && !has_entries_below(path, entries) {
        return;
    }
    let Value::Object(map) = value else {
        assert!(entries.iter().any(|entry| entry.path == *path), "{} has no comment", path.join("."));
        return;
    };
    for (key, value) in map {
        path.push(key.clone());
        assert_explained(value, path, entries);
        path.pop();
    }
}

fn has_entries_below(path: &[String], entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.path.len() > path.len() && entry.path.starts_with(path))
}

/// How that of the webhook's chart begins.
pub const WEBHOOK: &str = "\
# gmsa-webhook

The admission webhook for Windows Group Managed Service Accounts (GMSA), as a Helm chart for Helm 3 and 4. See
[docs/install.md](../../docs/install.md) for the installation, [docs/migrate.md](../../docs/migrate.md) for the upgrade from the Go
webhook's chart, and [docs/uninstall.md](../../docs/uninstall.md) for the removal.

```sh
helm install gmsa-webhook charts/gmsa-webhook --namespace gmsa-webhook --create-namespace \\
  --set image.repository=registry.example.com/gmsa-webhook
```

Kubernetes 1.30 and later are supported in full, 1.25 to 1.29 without match conditions: there the API server asks the webhook about every
pod.

## Values

A blank value (`key:` with nothing behind it) means the default, for every key. Unknown keys are refused by name. As a dependency of another chart, put them
under the parent's key for it.

This table is made from the comments in [values.yaml](values.yaml).

| Value | Default | Meaning |
| --- | --- | --- |
";

/// How that of the accounts' chart begins.
pub const ACCOUNTS: &str = "\
# gmsa-accounts

Many credential specs from one list, with who may use them: a Helm chart for Helm 3 and 4, beside that of the webhook, which brings the custom resource. One release is for the accounts of one domain.

```sh
kubectl gmsa credspec new --account WebApp1 --directory corp.example.com --directory-user you@corp.example.com -o values > accounts.yaml
helm install accounts charts/gmsa-accounts --namespace gmsa-webhook -f accounts.yaml
```

For each entry of `accounts` it makes a credential spec, a ClusterRole that holds `use` of it, and a RoleBinding for each grant, in the grant's namespace, which must exist. The names are
those that `kubectl gmsa grant` gives.

Pods depend on credential specs, so these and their ClusterRoles stay when their entry, or the release, is removed (`helm.sh/resource-policy: keep`, and the same for Argo CD). RoleBindings go with their grant, so that
what is removed from Git is revoked. Objects that exist already, such as those that `kubectl gmsa grant` made, are taken over by `helm install --take-ownership` (Helm 3.17); of what `kubectl apply` made, Helm 4
also needs `--force-conflicts`.

Where Helm renders for a cluster, it looks at the namespaces of the grants and at the credential specs of the entries, and an upgrade with a new credential spec lists them all. What would end in the middle, or have
pods refused, is refused with its entry before anything is changed. So you need `get` on these namespaces and on that of the release, and `get` and `list` on credential specs. `helm template` and Argo CD render without the cluster.

### Rename an entry

Pods that name a credential spec need it and its grants until they are replaced. So add the account a second time, by its new `name` and with the same grants; change the workloads; and remove the old entry when no
workload names it.

### Move an entry to another release

1. In the old release set `keepGrants: true`, and upgrade it. Remove the entry, and upgrade it again: its objects stay.
2. `kubectl annotate gmsacredentialspec NAME meta.helm.sh/release-name- meta.helm.sh/release-namespace-`
3. Add the entry to the new release: `helm upgrade --take-ownership`.

### Find what is kept and in no list

```sh
release=accounts namespace=gmsa-webhook
comm -23 <(kubectl get gmsacredentialspecs -l \"app.kubernetes.io/name=gmsa-accounts,app.kubernetes.io/instance=$release\" -o name | sort) \\
  <(helm get manifest \"$release\" -n \"$namespace\" | kubectl get -f - --ignore-not-found -o name | sort)
```

`kubectl delete` ends one that no workload names; and the ClusterRole `gmsa-use-NAME` with it.

## Values

Unknown keys are refused by name. This table is made from the comments in [values.yaml](values.yaml).

| Value | Default | Meaning |
| --- | --- | --- |
";
