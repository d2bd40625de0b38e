#!/bin/bash
# Runs the fuzz targets, all or one, each for the given seconds (60), and prints what they did: just fuzz [TARGET] [SECONDS].
# A target starts from its seeds, at most twenty inputs that reach most of its code, and from its corpus: the inputs that earlier runs found, which the
# nightly workflow keeps. `just fuzz TARGET cmin` reduces the corpus to the inputs that together reach as much.
set -euo pipefail
cd "$(dirname "$0")"

targets=(review credspec directory kerberos manifests certificates http)
seconds=60
for argument in "$@"; do
    case $argument in
        cmin | [0-9]*) seconds=$argument ;;
        *) targets=("$argument") ;;
    esac
done

missing() {
    echo "error: $1" >&2
    exit 2
}
cargo +nightly --version >/dev/null 2>&1 || missing "no nightly toolchain: rustup toolchain install nightly"
cargo +nightly fuzz --version >/dev/null 2>&1 || missing "no cargo-fuzz: cargo install cargo-fuzz"

echo "| target | executions | per second | most memory, MiB | inputs kept |"
echo "|---|---|---|---|---|"
for target in "${targets[@]}"; do
    features=()
    seeds=("seeds/$target")
    # As long as real inputs are.
    longest=8192
    case $target in
        review) seeds+=(../tests/golden ../benches/baseline) longest=16384 ;;
        credspec) longest=2048 ;;
        manifests) features=(--features server) seeds+=(../examples) ;;
        certificates) features=(--features server) longest=4096 ;;
        directory) features=(--features directory) longest=4096 ;;
        kerberos) features=(--features kerberos) longest=2048 ;;
        http) features=(--features server) ;;
        *) missing "no fuzz target $target" ;;
    esac
    corpus=corpus/$target
    mkdir -p "$corpus"
    # Without the address sanitizer: the project forbids unsafe code, and what it asserts is met three times as often.
    run() {
        cargo +nightly fuzz run --sanitizer none "${features[@]}" "$target" "$@" >"$log" 2>&1 || {
            tail -n 60 "$log" >&2
            exit 1
        }
    }
    log=$(mktemp)
    if [[ $seconds == cmin ]]; then
        small=$(mktemp -d)
        run "$small" "$corpus" -- -set_cover_merge=1 -max_len="$longest"
        rm -r "$corpus"
        mv "$small" "$corpus"
        du -bs "$corpus"
        continue
    fi
    run "$corpus" "${seeds[@]}" -- -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 \
        -max_len="$longest" -print_final_stats=1
    stat() { sed -n "s/^stat::$1: *//p" "$log"; }
    echo "| \`$target\` | $(stat number_of_executed_units) | $(stat average_exec_per_sec) | $(stat peak_rss_mb) | $(find "$corpus" -type f | wc -l) |"
    rm "$log"
done
