#!/usr/bin/env bash
set -eu
for end in tar.gz cdx.json; do echo "$1" >"$2/kubectl-gmsa-VERSION-$1.$end"; done
case $1 in darwin-arm64) target=aarch64 ;; *) target=x86_64 ;; esac
mkdir -p "target/$target-apple-darwin/dist-plugin"
printf '#!/bin/sh\n' >"target/$target-apple-darwin/dist-plugin/kubectl-gmsa"
chmod +x "target/$target-apple-darwin/dist-plugin/kubectl-gmsa"
