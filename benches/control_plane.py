"""A control plane for the benchmarks: etcd and kube-apiserver on loopback, and webhooks that run against it."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import secrets
import shutil
import ssl
import subprocess
import threading
import time
from pathlib import Path

from report import ROOT, Failure

NAMESPACE, ACCOUNT = "gmsa-webhook", "gmsa-webhook"
SPECS = "/apis/windows.k8s.io/v1/gmsacredentialspecs"
START_LIMIT = 120.0  # seconds


def binary(name: str) -> str:
    """A program of the control plane, or of the machine."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "/usr/local/kubebuilder/bin")
    found = shutil.which(name, path=assets) or shutil.which(name)
    if not found:
        raise Failure(f"no {name} in {assets}: set KUBEBUILDER_ASSETS")
    return found


class Plane:
    """A control plane with the webhook's kind of object, its role, and what the benchmarks' pod needs."""

    def __init__(self, folder: Path, free_address) -> None:
        self.folder, self.address, etcd, peer = folder, free_address(), free_address(), free_address()
        self.token = secrets.token_hex(16)
        (folder / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        key = folder / "accounts.key"
        subprocess.run([binary("openssl"), "genrsa", "-out", key, "2048"], check=True, stderr=subprocess.DEVNULL)
        self.processes = [
            self.start("etcd", "--unsafe-no-fsync", "--data-dir", folder / "etcd", f"--listen-client-urls=http://{etcd}",
                       f"--advertise-client-urls=http://{etcd}", f"--listen-peer-urls=http://{peer}"),
            self.start("kube-apiserver", f"--etcd-servers=http://{etcd}", "--bind-address=127.0.0.1",
                       f"--secure-port={self.address.rpartition(':')[2]}", "--cert-dir", folder / "certs",
                       "--token-auth-file", folder / "tokens.csv", "--authorization-mode=RBAC",
                       "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file", key,
                       "--service-account-signing-key-file", key, "--service-cluster-ip-range=10.0.0.0/24",
                       "--endpoint-reconciler-type=none", "--max-requests-inflight=4000"),
        ]
        self.local = threading.local()

    def start(self, name: str, *arguments) -> subprocess.Popen:
        """Starts a program; what it says goes to NAME.log."""
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen([binary(name), *arguments], stdout=log, stderr=log)

    def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> dict:
        """Calls the API server as an administrator, on this thread's connection."""
        for _ in range(2):
            if not hasattr(self.local, "connection"):
                # Its certificate was made a moment ago on this machine.
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                self.local.connection = http.client.HTTPSConnection(self.address, timeout=60, context=context)
            connection = self.local.connection
            try:
                headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                connection.close()
                del self.local.connection
        else:
            raise Failure(f"{method} {path}: no answer")
        if answer.status >= 300:
            raise Failure(f"{method} {path}: {answer.status}: {text[:300]!r}")
        return json.loads(text) if text.startswith(b"{") else {}

    def ready(self) -> None:
        """Waits for the API server, and installs what the webhook needs."""
        until = time.monotonic() + START_LIMIT
        while True:
            try:
                self.call("GET", "/readyz")
                break
            except Failure:
                if time.monotonic() > until or any(process.poll() is not None for process in self.processes):
                    raise
                time.sleep(0.2)
        rbac, subjects = "/apis/rbac.authorization.k8s.io/v1", [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]
        for name in (NAMESPACE, "cap"):
            self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
        rules = [
            {"apiGroups": ["windows.k8s.io"], "resources": ["gmsacredentialspecs"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"]},
        ]
        self.call("POST", f"{rbac}/clusterroles", {"metadata": {"name": ACCOUNT}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT}
        self.call("POST", f"{rbac}/clusterrolebindings", {"metadata": {"name": ACCOUNT}, "roleRef": role, "subjects": subjects})
        # The account of the pods may use every credential spec.
        rules = [{"apiGroups": ["windows.k8s.io"], "resources": ["gmsacredentialspecs"], "verbs": ["use"]}]
        self.call("POST", f"{rbac}/clusterroles", {"metadata": {"name": "use"}, "rules": rules})
        subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": "cap"}]
        self.call("POST", f"{rbac}/namespaces/cap/rolebindings", {"metadata": {"name": "use"}, "roleRef": role | {"name": "use"}, "subjects": subjects})
        definition = (ROOT / "charts/gmsa-webhook/crds/gmsacredentialspecs.yaml").read_text(encoding="utf-8")
        apply = "?fieldManager=bench&force=true"
        request = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gmsacredentialspecs.windows.k8s.io" + apply
        self.apply(request, definition)
        while True:
            try:
                self.call("GET", SPECS)
                break
            except Failure:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def apply(self, path: str, yaml: str) -> None:
        """Applies a manifest: the API server reads YAML."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/apply-patch+yaml"}
        self.local.connection.request("PATCH", path, yaml.encode(), headers)
        answer = self.local.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise Failure(f"{path}: {answer.status}: {text[:300]!r}")

    def specs(self, names: list[str]) -> None:
        """Creates credential specs, sixteen at a time."""
        accounts = [{"Name": "WebApp1", "Scope": scope} for scope in ("CONTOSO", "contoso.com")]
        join = {
            "DnsName": "contoso.com", "DnsTreeName": "contoso.com", "Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a",
            "MachineAccountName": "WebApp1", "NetBiosName": "CONTOSO", "Sid": "S-1-5-21-2126449477-2524075714-3094792973",
        }
        credspec = {
            "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": accounts}, "CmsPlugins": ["ActiveDirectory"],
            "DomainJoinConfig": join,
        }
        base = {"apiVersion": "windows.k8s.io/v1", "kind": "GMSACredentialSpec", "credspec": credspec}
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda name: self.call("POST", SPECS, base | {"metadata": {"name": name}}), names))

    def credentials(self) -> tuple[dict, Path]:
        """The webhook's kubeconfig, and the folder that a pod with its service account would find."""
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
        token = self.call("POST", path, {"spec": {"expirationSeconds": 86400}})["status"]["token"]
        authority = self.folder / "certs" / "apiserver.crt"
        folder = self.folder / "run" / "secrets" / "kubernetes.io" / "serviceaccount"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_text(token)
        (folder / "namespace").write_text(NAMESPACE)
        shutil.copy(authority, folder / "ca.crt")
        kubeconfig = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://{self.address}", "certificate-authority": str(authority)}}],
            "users": [{"name": "c", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
        (self.folder / "kubeconfig").write_text(json.dumps(kubeconfig))
        return self.folder / "kubeconfig", self.folder / "run"

    def environment(self, port: str) -> dict:
        """What a pod of the webhook has in its environment, and the certificate that it serves with."""
        pair = [self.folder / name for name in ("tls.crt", "tls.key")]
        if not pair[0].exists():
            subprocess.run(
                [binary("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-out", pair[0], "-keyout", pair[1]],
                check=True, stderr=subprocess.DEVNULL,
            )
        host, _, api_port = self.address.rpartition(":")
        return {
            "TLS_CRT": str(pair[0]), "TLS_KEY": str(pair[1]), "HTTPS_PORT": port, "PATH": os.environ["PATH"],
            "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": api_port,
        }

    def stop(self) -> None:
        """Ends it."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@contextlib.contextmanager
def control_plane(folder: Path, free_address):
    """A control plane, until the block ends."""
    started = Plane(folder, free_address)
    try:
        started.ready()
        yield started
    finally:
        started.stop()
