//! Where the programs of a control plane are.

use std::{
    env,
    path::{Path, PathBuf},
};

#[derive(Clone)]
pub struct Binaries {
    pub etcd: PathBuf,
    pub api_server: PathBuf,
    /// kube-controller-manager, which not everybody has.
    pub controller_manager: Option<PathBuf>,
}

impl Binaries {
    /// Looks for them in the folder that `KUBEBUILDER_ASSETS` names, and for etcd in `PATH` too. `just e2e` and `just e2e-install` run their
    /// tests a second time with that of `KUBEBUILDER_ASSETS_OLDEST` in its place; the others that need a control plane do not.
    ///
    /// # Errors
    /// What is missing, in one line.
    pub fn find() -> Result<Self, String> {
        let assets = env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty());
        let assets = assets.map_or_else(|| PathBuf::from("/usr/local/kubebuilder/bin"), PathBuf::from);
        let path = env::var_os("PATH").unwrap_or_default();
        let anywhere =
            |name| find(&assets, name).or_else(|| env::split_paths(&path).find_map(|folder| find(&folder, name)));
        let missing = |name| format!("no {name} in {}: set KUBEBUILDER_ASSETS", assets.display());
        Ok(Self {
            etcd: anywhere("etcd").ok_or_else(|| missing("etcd"))?,
            api_server: find(&assets, "kube-apiserver").ok_or_else(|| missing("kube-apiserver"))?,
            controller_manager: find(&assets, "kube-controller-manager"),
        })
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.join(name)).filter(|path| path.is_file())
}
