//! Bytes of a file of manifests: UTF-8 or UTF-16, YAML or JSON. Every document says what it is and where, and the same text
//! in UTF-16 gives the same documents. Credential specs and roles are taken from them, and problems are printed.

#![no_main]

use gmsa_cluster::{authorizer::rbac::Rbac, manifests, resolver::manifests::CredentialSpecs};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = match manifests::decode(bytes.to_vec()) {
        Ok(text) => text,
        Err(start) => {
            assert!(start.len() <= 2 * bytes.len());
            return;
        }
    };
    let read = manifests::parse("fuzz.yaml", &text, &manifests::Bounds::SERVER);
    let lines = text.lines().count() as u64 + 1;
    for document in &read.documents {
        assert!(!document.api_version.is_empty() && !document.kind.is_empty());
        for pointer in ["", "/metadata/name", "/credspec/CmsPlugins/0", "/items/0"] {
            assert!((1..=lines).contains(&document.line_of(pointer)), "{pointer}");
        }
    }
    // Printed, a problem fits on a screen, whatever it quotes.
    let (specs, refused_specs) = CredentialSpecs::from_documents(&read.documents);
    let (_, refused_roles) = Rbac::from_documents(&read.documents);
    assert!(specs.names().len() <= read.documents.len());
    for problem in refused_specs.iter().chain(&refused_roles) {
        assert!(problem.to_string().len() < 16 * 1024, "{problem}");
    }
    // A byte order mark says what follows, so nothing else does.
    let mut wide = vec![0xff, 0xfe];
    wide.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(manifests::decode(wide).as_deref(), Ok(text.as_str()));
    let documents = read.documents.len();
    assert_eq!(read.strict().documents.len(), documents);
});
