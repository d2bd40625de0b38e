//! Errors of a kubeconfig and its credentials, in our own words: the libraries' messages contain Rust debug output, and omit the name of
//! a credential program.

use std::io;

use anyhow::{Error, anyhow};
use gmsa_cluster::apiserver::ConnectError;
use kube::{
    client::AuthError,
    config::{AuthInfo, ExecConfig, KubeconfigError, LoadDataError},
};

/// The error of an unreadable or unusable kubeconfig.
pub(super) fn of_kubeconfig(error: KubeconfigError) -> Error {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.into(),
        // The later lines quote the file.
        KubeconfigError::Parse(error) => {
            anyhow!(error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
        }
        KubeconfigError::LoadCertificateAuthority(error) => of_data("certificate-authority", error),
        KubeconfigError::LoadClientCertificate(error) => of_data("client-certificate", error),
        KubeconfigError::LoadClientKey(error) => of_data("client-key", error),
        other => other.into(),
    }
}

fn of_data(field: &str, error: LoadDataError) -> Error {
    match error {
        LoadDataError::DecodeBase64(_) => anyhow!("{field}-data is not base64"),
        LoadDataError::ReadFile(error, path) => Error::from(error).context(format!("{field}: {}", path.display())),
        LoadDataError::NoBase64DataOrFile => anyhow!("{field}: it names no file"),
    }
}

/// The error of unusable credentials.
pub(super) fn of_client(error: ConnectError, user: &AuthInfo) -> Error {
    let ConnectError::Unusable(cause) = error else { return error.into() };
    match cause.downcast::<kube::Error>().map(|error| *error) {
        Ok(kube::Error::Auth(error)) => of_user(error, user),
        Ok(kube::Error::InferKubeconfig(error)) => of_kubeconfig(error).context("cannot use the kubeconfig"),
        Ok(other) => ConnectError::Unusable(other.into()).into(),
        Err(other) => ConnectError::Unusable(other).into(),
    }
}

fn of_user(error: AuthError, user: &AuthInfo) -> Error {
    let program = user.exec.as_ref().and_then(|ExecConfig { command, .. }| command.as_deref()).unwrap_or("the program");
    match error {
        AuthError::AuthExecStart(error) if error.kind() == io::ErrorKind::NotFound => anyhow!(
            "the kubeconfig takes its credentials from {program}, which is not there: install it, or put it on the PATH"
        ),
        AuthError::AuthExecStart(error) => {
            Error::from(error).context(format!("cannot run {program}, from which the kubeconfig takes its credentials"))
        }
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it does not say why");
            anyhow!(
                "{program}, from which the kubeconfig takes its credentials, failed ({}): {said}. Log in again",
                out.status
            )
        }
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => {
            anyhow!("{program}, from which the kubeconfig takes its credentials, printed no ExecCredential")
        }
        AuthError::ReadTokenFile(error, path) => {
            Error::from(error).context(format!("cannot read the token file {}", path.display()))
        }
        other => match &user.auth_provider {
            Some(provider) => anyhow!(
                "the kubeconfig has the auth-provider {}, which kubectl has not any more either: use an exec plugin, such as kubelogin or gke-gcloud-auth-plugin",
                provider.name
            ),
            None => Error::from(other).context("the credentials of the kubeconfig cannot be used"),
        },
    }
}
