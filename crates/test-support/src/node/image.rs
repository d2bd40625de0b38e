//! Images of a node, which no registry has: the programs that were built with the tests, or archives, and a folder of other programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::{Node, shell};

/// Fills a folder with a program and the libraries that it is linked with.
const COLLECT: &str = r#"set -e
mkdir -p "$2"
cp "$1" "$2/"
ldd "$1" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$2${library%/*}"
  cp --dereference "$library" "$2$library"
done
"#;

/// What a folder of a domain's programs has that clients do not need.
const NOT_IN_LAYERS: [&str; 14] = [
    "dc/*",
    "dev/*",
    "proc/*",
    "sys/*",
    "tls/*",
    "tmp/*",
    "var/*",
    "usr/share/*",
    "usr/lib/python3*/*",
    "usr/lib/*/samba/*",
    "usr/lib/jvm/*",
    "usr/lib/postgresql/*",
    "usr/lib/*/libLLVM*",
    "usr/lib/*/libz3*",
];

/// An image in an archive.
pub struct Image {
    archive: PathBuf,
    /// Its name in the archive, and its name in pods.
    names: [String; 2],
}

/// The images of a node.
pub struct Images(Vec<Image>);

impl Images {
    /// The first is that of a pod's sandbox.
    pub fn new(images: Vec<Image>) -> Self {
        Self(images)
    }

    pub(super) fn sandbox(&self) -> &str {
        &self.0[0].names[1]
    }

    pub(super) fn load(&self, node: &mut Node) {
        for Image { archive, names: [stored, known] } in &self.0 {
            succeeds(node.ctr(&["images", "import"]).arg(archive));
            if stored != known {
                succeeds(&mut node.ctr(&["images", "tag", stored, known]));
            }
        }
    }
}

impl Image {
    /// That of a program of this project, as `deploy/image.sh` writes it.
    pub fn of_archive(archive: &Path, stored: &str, known: &str) -> Self {
        Self { archive: archive.to_owned(), names: [stored, known].map(str::to_owned) }
    }

    /// One with a program of this project alone, and its libraries: what `Dockerfile` makes of a static one. Its files are made in `folder`.
    pub fn of_program(binary: &Path, folder: &Path, known: &str) -> Self {
        let name = binary.file_name().unwrap().to_str().unwrap();
        let files = folder.join(name);
        shell(COLLECT, &[binary.to_str().unwrap(), files.to_str().unwrap()]);
        let layer = folder.join(name).with_extension("layer");
        succeeds(Command::new("tar").arg("-C").arg(&files).arg("-cf").arg(&layer).arg("."));
        let config =
            json!({"User": "65532:65532", "Entrypoint": [format!("/{name}")], "Env": ["MIMALLOC_PURGE_DELAY=0"]});
        Self::of_layer(&layer, config, known)
    }

    /// Images of the programs in a folder that a distribution has been installed in: the first waits, the second does what pods say.
    pub fn of_root(root: &Path, folder: &Path, known: [&str; 2]) -> [Self; 2] {
        let layer = folder.join("root.layer");
        let mut command = Command::new("tar");
        command.arg("-C").arg(root).args(NOT_IN_LAYERS.map(|path| format!("--exclude=./{path}")));
        succeeds(command.arg("-cf").arg(&layer).arg("."));
        let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        [
            Self::of_layer(&layer, json!({"Entrypoint": ["/usr/bin/sleep", "infinity"]}), known[0]),
            Self::of_layer(&layer, json!({"Env": [path]}), known[1]),
        ]
    }

    fn of_layer(layer: &Path, config: Value, known: &str) -> Self {
        let folder = layer.parent().unwrap();
        let sum = Command::new("sha256sum").arg(layer).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        let image = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sum.split(' ').next().unwrap())]},
        });
        let layer = layer.file_name().unwrap().to_str().unwrap();
        let manifest = json!([{"Config": "config.json", "RepoTags": [known], "Layers": [layer]}]);
        fs::write(folder.join("config.json"), image.to_string()).unwrap();
        fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        let archive = folder.join(format!("{}.tar", known.replace(['/', ':'], "-")));
        let mut command = Command::new("tar");
        succeeds(command.arg("-C").arg(folder).arg("-cf").arg(&archive).args(["manifest.json", "config.json", layer]));
        Self { archive, names: [known, known].map(str::to_owned) }
    }
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
