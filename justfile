# Every task of the project; `just` alone lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

_default:
    @just --list --unsorted

# Everything that must hold before a merge, apart from the tests. A new check is a recipe, its name here, its tool in `.ci/run`, and its words in the
# row of `just check` in CONTRIBUTING.md.
check: fmt clippy doc deny typos sentences docs shellcheck workflows forms chart

# The README's test command.
test:
    cargo test

# The sources are formatted.
fmt:
    cargo fmt --all -- --check

# Lints, in the library, the binaries, the tests and the benchmarks; `--all-targets` leaves out what `cargo test` leaves out.
clippy:
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cargo clippy --locked --test chart --test e2e --test install --bench baseline --bench cluster --bench attacks --bench storm -- -D warnings
    cargo clippy --locked -p gmsa-tickets -p kubectl-gmsa --test domain --test node --test directory --bench tickets -- -D warnings

# The documentation builds; private items too, so that the links between them are checked.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --lib --document-private-items

# Dependencies: licences, sources, banned crates. Not the advisories: they need a download, and change without a commit.
deny:
    cargo deny --locked check --hide-inclusion-graph bans licenses sources

# Spelling.
typos:
    typos

# No sentence of the pages has more than 35 words, no cell of a table more than 40.
sentences:
    python3 .ci/sentences.py

# The pages as a site with a search, in target/site; a link to nothing fails it. It needs Python 3 and npm.
docs *ARGS:
    .ci/docs {{ ARGS }}

# Every shell script, whatever its name.
shellcheck:
    git grep --untracked -lE '^#!/.*\b(bash|sh)$' | xargs -r shellcheck -x

# The workflows and the action: pinned actions, permissions, injection; their syntax, where there is an actionlint.
workflows:
    zizmor --offline --quiet .github/workflows action.yml
    ! command -v actionlint >/dev/null || actionlint

# What the forge and Renovate read, by their schemas.
forms:
    check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
    check-jsonschema --builtin-schema vendor.github-actions action.yml
    check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
    check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/{bug,idea}.yml
    check-jsonschema --builtin-schema vendor.renovate renovate.json

# Advisories about dependencies, as they are known today: the nightly workflow asks, and opens an issue.
advisories:
    cargo deny --locked check --hide-inclusion-graph advisories

# What faults cost pods that are being created, on a real control plane: `just chaos [FAULT] [--replicas N] [--write]`.
chaos *ARGS:
    cargo test --locked --profile dist --test e2e -- chaos {{ ARGS }}

# An hour of mixed load on a real control plane, and what memory does meanwhile: `just soak [MINUTES] [--write]`.
soak *ARGS:
    cargo test --locked --profile dist --test e2e -- soak {{ ARGS }}

# Fuzzing, with cargo-fuzz on a nightly toolchain: all targets or one, each for this many seconds; `just fuzz TARGET cmin` makes its corpus small.
fuzz *ARGS:
    fuzz/run.sh {{ ARGS }}

# Changes the core in ways that a test must notice, by cargo-mutants; docs/measurements.md says which mutants live.
mutants *ARGS:
    @cargo mutants --version >/dev/null 2>&1 || { echo "error: no cargo-mutants: cargo install cargo-mutants" >&2; exit 2; }
    cargo mutants --package gmsa-core --timeout 60 {{ ARGS }} -- --lib --test bounds

# The plugin for Windows, its tests under Wine. It needs the Rust target, mingw's C compiler and wine64.
windows *WORD:
    tests/windows.sh {{ WORD }}

# The plugin against a real Active Directory domain, which it makes: Samba in a namespace of its own. It needs root, mmdebstrap, iproute2 and openssl.
e2e-directory *WORD:
    tests/directory.sh {{ WORD }}

# The broker and the agent between a real control plane and the same domain: both tests' needs; `just e2e-tickets costs:: --write` updates docs/measurements.md.
e2e-tickets *ARGS:
    tests/directory.sh --tickets {{ ARGS }}

# The broker, the webhook and pods on a node with a real kubelet, from nothing, beside the same domain: `just e2e-node [ROW] [--images] [--write]`.
e2e-node *ARGS:
    tests/directory.sh --node {{ ARGS }}

# What a review costs inside the core, by criterion.
bench-decide *ARGS:
    cargo bench --locked --profile dist --package gmsa-bench-decide -- {{ ARGS }}

# What a review costs above the baseline, by wrk on loopback; `just bench --write` updates docs/measurements.md.
bench *ARGS:
    python3 benches/baseline.py {{ ARGS }}

# What tickets cost the broker, beside a simulated directory, KDC and API server; `just bench-tickets --write` updates docs/measurements.md.
bench-tickets *ARGS:
    cargo bench --locked --profile dist --package gmsa-tickets --bench tickets -- {{ ARGS }}

alias siege := attacks

# Every attack that the server, built with `--profile dist`, must survive, in a memory cgroup; `just attacks WORD` picks, `just attacks --write` updates docs/measurements.md.
attacks *ARGS:
    cargo bench --locked --profile dist --bench attacks -- {{ ARGS }}

# Many pods at once on real control planes, and how many of them the webhook refuses; `just storm --write` updates docs/measurements.md.
storm *ARGS:
    cargo bench --locked --profile dist --bench storm -- {{ ARGS }}

# Pods created per second on a real control plane; `just bench-cluster --write` updates docs/measurements.md.
bench-cluster *ARGS:
    cargo bench --locked --profile dist --bench cluster -- {{ ARGS }}

# Seconds and memory of `kubectl gmsa check` on 10,000 documents; `just bench-check --write` updates docs/measurements.md.
bench-check *ARGS:
    python3 benches/check.py {{ ARGS }}

# The Helm chart: rendered, refused and generated, its alerts tested. It needs helm and promtool.
chart *WORD:
    cargo test --locked --test chart -- {{ WORD }}

# End to end on a real control plane: etcd and kube-apiserver from the folder that KUBEBUILDER_ASSETS names, then from the one that
# KUBEBUILDER_ASSETS_OLDEST names, the oldest Kubernetes to run on; `just e2e WORD` picks.
e2e *WORD:
    cargo test --locked --test e2e -- {{ WORD }}
    [[ -z ${KUBEBUILDER_ASSETS_OLDEST-} ]] || KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS_OLDEST cargo test --locked --test e2e -- {{ WORD }}

# The chart, its match conditions and guard, upgrades and the script, on the same kinds of control plane, one for each test. A test for what the older one lacks says so.
e2e-install *WORD:
    cargo build --locked --bin kubectl-gmsa
    cargo test --locked --test install -- --test-threads=2 {{ WORD }}
    [[ -z ${KUBEBUILDER_ASSETS_OLDEST-} ]] || KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS_OLDEST cargo test --locked --test install -- --test-threads=2 {{ WORD }}

# Regenerates what is made from the chart and what its tests expect: look at the difference.
generate:
    UPDATE_SNAPSHOTS=1 cargo test --locked --test chart

# The image of the webhook, of gmsa-tickets or of the plugin (kubectl-gmsa), built by buildah, started and checked; it is in target/image, with its bill of materials.
image ARCH="amd64" PROGRAM="gmsa-webhook":
    deploy/image.sh {{ ARCH }} {{ PROGRAM }}

# All that a release holds, in target/release-VERSION: images, plugin, chart, manifests, bills of materials, checksums.
dist *ARGS:
    deploy/dist.sh {{ ARGS }}
