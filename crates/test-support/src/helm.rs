//! `helm` for tests: no home, no cluster, no network.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The chart, from the root of the package, where tests run.
pub const CHART: &str = "charts/gmsa-webhook";

/// A `helm` that touches nothing outside of its own folder.
pub struct Helm {
    home: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl Helm {
    pub fn new() -> Self {
        Self::of_cluster(Path::new("/dev/null"))
    }

    /// One for the cluster of this kubeconfig.
    pub fn of_cluster(kubeconfig: &Path) -> Self {
        Self { home: tempfile::tempdir().unwrap(), kubeconfig: kubeconfig.to_owned() }
    }

    pub fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Output {
        Command::new("helm")
            .args(args)
            .env("HELM_CACHE_HOME", self.home.path().join("cache"))
            .env("HELM_CONFIG_HOME", self.home.path().join("config"))
            .env("HELM_DATA_HOME", self.home.path().join("data"))
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .expect("`helm` must be on the PATH for these tests; .ci/run installs it")
    }

    /// What it prints, where it must succeed.
    pub fn prints<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "helm failed: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the chart renders as the release `gmsa`, with these arguments.
    pub fn template<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        self.prints(["template", "gmsa", CHART].into_iter().chain(args))
    }

    /// What it complains of, where it must fail.
    pub fn refuses<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.run(args);
        assert!(!output.status.success(), "helm accepted it: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}
