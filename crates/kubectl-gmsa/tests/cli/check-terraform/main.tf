resource "kubernetes_manifest" "web" {}
