//! The built `kubectl-gmsa`, as the plugin that `kubectl gmsa` finds.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::cluster::Cluster;

/// The tool in a folder of its own, for a cluster.
pub struct Tool<'p> {
    cluster: &'p Cluster,
    folder: tempfile::TempDir,
}

/// The built program.
pub fn plugin() -> PathBuf {
    // Built beside the server: `just e2e-install` does that.
    let plugin = Path::new(env!("CARGO_BIN_EXE_gmsa-webhook")).with_file_name("kubectl-gmsa");
    assert!(plugin.is_file(), "cargo build -p kubectl-gmsa must come first");
    plugin
}

impl<'p> Tool<'p> {
    /// In an empty folder.
    pub fn new(cluster: &'p Cluster) -> Self {
        Self { cluster, folder: tempfile::tempdir().unwrap() }
    }

    /// Where a file of this name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// `kubectl` there, with the plugin on its path, as the administrator.
    pub fn kubectl(&self, args: &str) -> Output {
        let mut command = self.command();
        command.args(args.split_whitespace()).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a command line by a shell there, with the plugin on its path.
    pub fn shell(&self, line: &str) -> Output {
        self.with_plugin("bash").args(["-ec", line]).stdin(Stdio::null()).output().unwrap()
    }

    fn command(&self) -> Command {
        self.with_plugin("kubectl")
    }

    fn with_plugin(&self, program: &str) -> Command {
        let plugins = plugin().parent().unwrap().to_owned();
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([plugins].into_iter().chain(env::split_paths(&path))).unwrap();
        let mut command = self.cluster.command(program);
        command.current_dir(self.folder.path()).env("PATH", path);
        command
    }

    /// What `kubectl gmsa` prints, and its exit code; it must have nothing to complain of, but may say what it waits for.
    pub fn gmsa(&self, args: &str) -> (String, i32) {
        let output = self.kubectl(&format!("gmsa {args}"));
        let errors = String::from_utf8_lossy(&output.stderr);
        let waits = |line: &str| args.contains("--wait") && line.starts_with("waiting: ");
        assert!(errors.lines().all(waits), "kubectl gmsa {args}: {errors}");
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    }

    /// The findings that `kubectl gmsa` prints, each by its level and rule, and its exit code.
    pub fn finds(&self, args: &str) -> (Vec<String>, i32) {
        let (report, code) = self.gmsa(args);
        let heads = report.lines().filter_map(|line| line.split_once("] "));
        let is_level = |head: &&str| ["error[", "warning[", "note["].iter().any(|level| head.starts_with(level));
        (heads.map(|(head, _)| head).filter(is_level).map(|head| format!("{head}]")).collect(), code)
    }
}
