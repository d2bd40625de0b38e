"""Writes the chart and the static manifest of a release: what is in the source tree, with the addresses that the release is published at.

usage: deploy/stamp.py IMAGE SOURCE FOLDER

IMAGE is the repository of the image, without a tag, beside which the charts are in `charts/`; SOURCE the address of the source repository. FOLDER gets the charts as `gmsa-webhook/`, `gmsa-accounts/`
and `gmsa-tickets/`, to be packed, `gmsa-webhook.yaml`, which `kubectl apply` takes, the same for older clusters, the `kustomization.yaml` of the first, and `gmsa-static-policies.yaml`, for the disk of a control plane. The CRD is in none of
them: `kubectl delete` of the manifest would delete every credential spec. Needs helm.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

CHART = pathlib.Path("charts/gmsa-webhook")
ACCOUNTS = pathlib.Path("charts/gmsa-accounts")
TICKETS = pathlib.Path("charts/gmsa-tickets")
PLATFORMS = ["linux/amd64", "linux/arm64"]


def replaced(text, old, new):
    """The text with its one `old` as `new`: a file that no longer looks as expected must not pass unstamped."""
    if text.count(old) != 1:
        sys.exit(f"stamp: {old!r} is expected once, and found {text.count(old)} times")
    return text.replace(old, new)


def changes(version, about):
    """What CHANGELOG.md says of this version, or of what is unreleased, where it is `about` the chart: as Artifact Hub wants it, a list with a kind for each, of one sentence."""
    kinds = {"Added": "added", "Changed": "changed", "Deprecated": "deprecated", "Removed": "removed", "Fixed": "fixed", "Security": "security"}
    text = pathlib.Path("CHANGELOG.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## \[([^\]]+)\][^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    section = sections.get(version, sections.get("Unreleased", ""))
    found = []
    for title, items in re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", section, re.DOTALL | re.MULTILINE):
        for item in re.findall(r"^- (.*?)(?=^- |^\S|\Z)", items, re.DOTALL | re.MULTILINE):
            # A link of the sources leads nowhere there.
            item = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(item.split()))
            if re.search(about, item):
                sentence = re.split(r"(?<=[.;]) ", item)[0].rstrip(";")
                found.append({"kind": kinds[title], "description": textwrap.shorten(sentence, 200, placeholder=" …")})
    return found


def describe(target, source, version, about, annotations):
    """Completes Chart.yaml of the chart in `target`, with the changes that are `about` it. A JSON text is YAML too."""
    changed = changes(version, about)
    if changed:
        annotations = {"artifacthub.io/changes": json.dumps(changed, ensure_ascii=False), **annotations}
    lines = [f"home: {source}", f"icon: {source}/raw/v{version}/docs/icon.svg", f"sources: {json.dumps([source])}", "annotations:"]
    lines += [f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in annotations.items()]
    described = (target / "Chart.yaml").read_text(encoding="utf-8")
    described = replaced(described, "\nannotations:\n", "\n" + "\n".join(lines) + "\n")
    described = replaced(described, " maintainers\n", f" maintainers\n    url: {source}\n")
    (target / "Chart.yaml").write_text(described, encoding="utf-8")


def linked(readme, source, version):
    """A chart's README, whose links lead to the source."""
    readme = readme.replace("](../../", f"]({source}/blob/v{version}/")
    if "](.." in readme:
        sys.exit("stamp: a link of a chart's README leads out of the chart")
    return readme


def accounts(image, source, version, folder):
    """The chart of many accounts."""
    target = folder / "gmsa-accounts"
    shutil.copytree(ACCOUNTS, target)
    describe(target, source, version, r"gmsa-accounts", {})
    charts = image.rpartition("/")[0] + "/charts"
    readme = (target / "README.md").read_text(encoding="utf-8")
    readme = replaced(readme, "helm install accounts charts/gmsa-accounts ", f"helm install accounts oci://{charts}/gmsa-accounts --version {version} ")
    (target / "README.md").write_text(linked(readme, source, version), encoding="utf-8")


def stamp(file, *changed):
    """Replaces in a file of a chart the one place of each pair."""
    text = file.read_text(encoding="utf-8")
    for old, new in changed:
        text = replaced(text, old, new)
    file.write_text(text, encoding="utf-8")


def tickets(image, source, version, folder):
    """The chart of the broker for Linux pods."""
    target = folder / "gmsa-tickets"
    shutil.copytree(TICKETS, target)
    registry = image.rpartition("/")[0]
    image, runbook = f"{registry}/gmsa-tickets", f"{source}/blob/v{version}/docs/metrics.md"
    for name in ("values.yaml", "files/values.yaml"):
        stamp(
            target / name,
            ("\n  repository: gmsa-tickets\n", f"\n  repository: {image}\n"),
            ("\n  runbookUrl: docs/metrics.md\n", f"\n  runbookUrl: {runbook}\n"),
        )
    stamp(
        target / "values.schema.json",
        ('"default": "gmsa-tickets"', f'"default": "{image}"'),
        ('"default": "docs/metrics.md"', f'"default": "{runbook}"'),
    )
    images = [{"name": "gmsa-tickets", "image": f"{image}:{version}", "platforms": PLATFORMS}]
    describe(target, source, version, r"gmsa-tickets", {"artifacthub.io/images": json.dumps(images)})
    stamp(
        target / "README.md",
        ("helm install gmsa-tickets charts/gmsa-tickets ", f"helm install gmsa-tickets oci://{registry}/charts/gmsa-tickets --version {version} "),
        ('`"gmsa-tickets"` | Image', f'`"{image}"` | Image'),
        ('`"docs/metrics.md"`', f'`"{runbook}"`'),
    )
    readme = target / "README.md"
    readme.write_text(linked(readme.read_text(encoding="utf-8"), source, version), encoding="utf-8")


def chart(image, source, version, folder):
    """The chart of the webhook, which names the image of the broker too: pods get their sidecar from it."""
    target = folder / "gmsa-webhook"
    shutil.copytree(CHART, target)
    registry = image.rpartition("/")[0]
    sidecar, runbook = f"{registry}/gmsa-tickets", f"{source}/blob/v{version}/docs/metrics.md"
    for name in ("values.yaml", "files/values.yaml"):
        stamp(
            target / name,
            ("\n  repository: gmsa-webhook\n", f"\n  repository: {image}\n"),
            ("\n    repository: gmsa-tickets\n", f"\n    repository: {sidecar}\n"),
            ("\n  runbookUrl: docs/metrics.md\n", f"\n  runbookUrl: {runbook}\n"),
        )
    stamp(
        target / "values.schema.json",
        ('"default": "gmsa-webhook"', f'"default": "{image}"'),
        ('"default": "gmsa-tickets"', f'"default": "{sidecar}"'),
        ('"default": "docs/metrics.md"', f'"default": "{runbook}"'),
    )
    stamp(target / "questions.yaml", ("\n    default: gmsa-webhook\n", f"\n    default: {image}\n"))
    images = [{"name": "gmsa-webhook", "image": f"{image}:{version}", "platforms": PLATFORMS}]
    links = [{"name": "install", "url": f"{source}/blob/v{version}/docs/install.md"}]
    # Not what is about the other charts, and not what is about the plugin's commands.
    about = r"^(?!.*gmsa-(accounts|tickets))(?!`(kubectl gmsa|check|doctor|outdated)\b).*\b([Cc]hart|[Hh]elm|values|Values|[Aa]lerts?|dashboard|CRD)\b"
    describe(target, source, version, about, {"artifacthub.io/images": json.dumps(images), "artifacthub.io/links": json.dumps(links)})
    readme = target / "README.md"
    stamp(
        readme,
        (
            "helm install gmsa-webhook charts/gmsa-webhook --namespace gmsa-webhook --create-namespace \\\n"
            "  --set image.repository=registry.example.com/gmsa-webhook\n",
            f"helm install gmsa-webhook oci://{registry}/charts/gmsa-webhook --version {version} --namespace gmsa-webhook --create-namespace\n",
        ),
        ('`"gmsa-webhook"` | Image', f'`"{image}"` | Image'),
        ('`"gmsa-tickets"` | Image', f'`"{sidecar}"` | Image'),
        ('`"docs/metrics.md"`', f'`"{runbook}"`'),
    )
    readme.write_text(linked(readme.read_text(encoding="utf-8"), source, version), encoding="utf-8")
    return target


def rendered(target, kubernetes, *options):
    """What the chart renders as the release `gmsa-webhook`, for this version of Kubernetes and later ones."""
    command = ["helm", "template", "gmsa-webhook", str(target), "--namespace", "gmsa-webhook", "--no-hooks", "--kube-version", kubernetes, *options]
    objects = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.sub(r"^# Source: .*\n", "", objects, flags=re.MULTILINE).removeprefix("---\n")


def static_policies(target, folder):
    """The policies of that release for the disk of a control plane, whose administrators are those that kubeadm makes."""
    admins = "kubeadm:cluster-admins"
    policies = rendered(target, "1.36", "--show-only", "templates/static-policies.yaml", "--set", f"staticPolicies.enabled=true,staticPolicies.admins.groups={{{admins}}}")
    head = (
        f"# Policies for the disk of each API server (docs/static-policies.md); no API server takes them as objects. They let the group {admins}\n"
        "# alone change the webhook: replace it everywhere with your groups, and name users in the empty list before each list of groups.\n"
    )
    (folder / "gmsa-static-policies.yaml").write_text(head + policies, encoding="utf-8")


def manifest(target, folder, name, kubernetes, head):
    """All objects, with a namespace of their own."""
    objects = rendered(target, kubernetes)
    objects = re.sub(r"^    (app.kubernetes.io/managed-by: Helm|helm.sh/chart: .*)\n", "", objects, flags=re.MULTILINE)
    namespace = (
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: gmsa-webhook\n"
        "  labels:\n    pod-security.kubernetes.io/enforce: restricted\n"
    )
    text = "\n---\n".join(part.strip("\n") for part in (namespace, objects))
    (folder / name).write_text(f"# {head}\n{text}\n", encoding="utf-8")


def kustomization(version, folder):
    """For kustomize: the manifest as it is named in a release, beside it."""
    text = f"""\
# For `kubectl apply -k`, and for overlays: in a folder with the manifest. The CRD is applied by itself, from gmsa-crd.yaml, because `kubectl delete -k` would
# delete every credential spec with it. An overlay may change the image, replicas, labels and the like. It must not change the name and the namespace,
# which the webhook's arguments hold too: Helm and deploy-gmsa-webhook.sh install by other names. Kubernetes 1.28 or later; for 1.25 to 1.27 put
# gmsa-webhook-{version}-kubernetes-1.25.yaml into the list below.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - gmsa-webhook-{version}.yaml
"""
    (folder / "kustomization.yaml").write_text(text, encoding="utf-8")


def main():
    image, source, folder = sys.argv[1], sys.argv[2].rstrip("/"), pathlib.Path(sys.argv[3])
    version = re.search('^version: (.+)$', (CHART / "Chart.yaml").read_text(encoding="utf-8"), re.MULTILINE)[1]
    target = chart(image, source, version, folder)
    accounts(image, source, version, folder)
    tickets(image, source, version, folder)
    older = f"gmsa-webhook-{version}-kubernetes-1.25.yaml"
    manifest(target, folder, "gmsa-webhook.yaml", "1.28", f"For Kubernetes 1.28 and later, which has match conditions; {older} is for 1.25 to 1.27.")
    manifest(target, folder, "gmsa-webhook-kubernetes-1.25.yaml", "1.25", "For Kubernetes 1.25 to 1.27: the API server asks about every pod (docs/install.md, older clusters).")
    kustomization(version, folder)
    static_policies(target, folder)


if __name__ == "__main__":
    main()
