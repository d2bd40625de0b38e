#!/usr/bin/env bash
set -eu
[[ $# == 2 ]]
mkdir -p target/release-VERSION
cd target/release-VERSION
files=(FILES)
for file in "${files[@]}"; do echo "$file" >"$file"; done
