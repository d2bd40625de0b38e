//! Files and paths as Windows and its shells write them. `just windows` runs these tests, and all others, on the program for Windows.

use std::fs;

use super::{portable, run, text};

const DOMAIN: &str = include_str!("../readme/domain.txt");

const MANIFEST: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  os: {name: windows}
  securityContext:
    windowsOptions:
      gmsaCredentialSpecName: WebApp1
  containers: [{name: iis}]
  runtimeClassName: windows-2022
";

const FOUND: &str = "\
OBJECT        SLOT       CREDENTIAL SPEC  RESULT
Pod shop/web  pod \"web\"  WebApp1          refused, 422: invalid-spec-name

error[invalid-spec-name] FILE:8: Pod shop/web
  spec.securityContext.windowsOptions.gmsaCredentialSpecName: GMSA cred spec name \"WebApp1\" of pod \"web\" is not a lower-case DNS subdomain
  fix: gmsaCredentialSpecName: webapp1

1 error in 1 object
";

/// A text in the encodings of `>` and `Out-File` in Windows PowerShell 5 and PowerShell 7, which end lines in CR LF there.
fn as_powershell_writes(text: &str) -> [(&'static str, Vec<u8>); 4] {
    let text = text.replace('\n', "\r\n");
    let utf16 = |bytes: fn(u16) -> [u8; 2]| format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect();
    [
        ("> in PowerShell 5, Out-File", utf16(u16::to_le_bytes)),
        ("Out-File -Encoding bigendianunicode", utf16(u16::to_be_bytes)),
        ("Out-File -Encoding utf8 in PowerShell 5", format!("\u{feff}{text}").into_bytes()),
        ("> in PowerShell 7", text.into_bytes()),
    ]
}

#[test]
fn a_domain_is_read_as_powershell_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let new = |file: &str| run(folder.path(), &["credspec", "new", "--account", "WebApp1", "--from-ad", file], b"");
    fs::write(folder.path().join("plain.txt"), DOMAIN).unwrap();
    let plain = new("plain.txt");
    assert_eq!((text(&plain.stderr), plain.status.code()), ("", Some(0)));
    assert!(text(&plain.stdout).contains("MachineAccountName: WebApp1"));
    for (how, bytes) in as_powershell_writes(DOMAIN) {
        fs::write(folder.path().join("domain.txt"), bytes).unwrap();
        let output = new("domain.txt");
        assert_eq!((text(&output.stdout), text(&output.stderr)), (text(&plain.stdout), ""), "{how}");
    }
}

#[test]
fn manifests_are_read_as_powershell_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    for (how, bytes) in as_powershell_writes(MANIFEST) {
        fs::write(folder.path().join("web.yaml"), &bytes).unwrap();
        let from_file = run(folder.path(), &["check", "-f", "web.yaml"], b"");
        assert_eq!(text(&from_file.stdout), FOUND.replace("FILE", "web.yaml"), "{how}");
        let from_folder = run(folder.path(), &["check", "-f", "."], b"");
        assert_eq!(portable(text(&from_folder.stdout)), FOUND.replace("FILE", "./web.yaml"), "{how}");
        let piped = run(folder.path(), &["check", "-f", "-"], &bytes);
        assert_eq!(text(&piped.stdout), FOUND.replace("FILE", "<stdin>"), "{how}");
    }
}

#[cfg(windows)]
#[test]
fn paths_have_drives_backslashes_and_spaces() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("my manifests").join("web farm");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("web app.yaml"), MANIFEST).unwrap();
    let absolute = deep.join("web app.yaml").to_str().unwrap().to_owned();
    assert!(absolute[1..].starts_with(":\\"), "{absolute}");
    for (given, named) in [
        (absolute.as_str(), absolute.as_str()),
        ("my manifests\\web farm\\web app.yaml", "my manifests\\web farm\\web app.yaml"),
        ("my manifests/web farm/web app.yaml", "my manifests/web farm/web app.yaml"),
        (".\\my manifests", ".\\my manifests\\web farm\\web app.yaml"),
    ] {
        let output = run(folder.path(), &["check", "-f", given], b"");
        assert_eq!(text(&output.stdout), FOUND.replace("FILE", named), "{given}");
    }
    let sarif = run(folder.path(), &["check", "-f", "my manifests", "-o", "sarif"], b"");
    let report: serde_json::Value = serde_json::from_slice(&sarif.stdout).unwrap();
    let place = &report["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "my%20manifests/web%20farm/web%20app.yaml");
    let arguments =
        ["credspec", "new", "--account", "WebApp1", "--from-ad", "domain.txt", "--out", "my manifests\\spec.yaml"];
    fs::write(folder.path().join("domain.txt"), DOMAIN).unwrap();
    let made = run(folder.path(), &arguments, b"");
    assert_eq!((text(&made.stdout), text(&made.stderr)), ("my manifests\\spec.yaml written\n", ""));
    assert!(fs::read_to_string(folder.path().join("my manifests/spec.yaml")).unwrap().contains("name: webapp1"));
}
