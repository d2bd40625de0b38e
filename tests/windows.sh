#!/usr/bin/env bash
# Builds the plugin for Windows and runs its tests under Wine, then looks at its colours on a console. Needs the Rust target
# x86_64-pc-windows-gnu, mingw's C compiler, wine64, and `script` of util-linux. What Wine needs it keeps in target/wine.
# usage: tests/windows.sh [WORD...]   words pick tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly TARGET=x86_64-pc-windows-gnu
folder=$(cargo metadata --format-version 1 --no-deps --offline | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
export WINEPREFIX=$folder/wine WINEDEBUG=-all
# Debian's package wine64 puts it where no PATH leads.
wine=$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)

failed() {
  printf 'windows: %s\n' "$*" >&2
  exit 1
}

# Windows has a library that Rust takes random numbers from, and Wine before 9 does not.
prepare() {
  local system=$WINEPREFIX/drive_c/windows/system32
  mkdir -p "$WINEPREFIX"
  "$wine" wineboot --init >/dev/null 2>&1
  [[ -e $system/bcryptprimitives.dll ]] || x86_64-w64-mingw32-gcc -shared -o "$system/bcryptprimitives.dll" -x c - -ladvapi32 <<'C'
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) { return RtlGenRandom(bytes, count); }
C
}

# on_console COMMAND...: what the command shows on a console.
on_console() {
  script --quiet --return --command "$*" /dev/null </dev/null
}

colours() {
  local program=$folder/$TARGET/debug/kubectl-gmsa.exe red=$'\e[31m' shown
  sed '1,/^-- manifests.yaml --$/d' crates/kubectl-gmsa/tests/cli/cases/check-broken.txt >"$folder/broken.yaml"
  local check="'$wine' '$program' check -f '$folder/broken.yaml'"
  shown=$(on_console "$check") && failed "check finds nothing: $shown"
  [[ $shown == *"${red}error["* ]] || failed "no colours on a console: $shown"
  shown=$(NO_COLOR=1 on_console "$check") && failed "check finds nothing: $shown"
  [[ $shown == *'error['* && $shown != *"$red"* ]] || failed "colours in spite of NO_COLOR: $shown"
  shown=$(bash -c "$check") && failed "check finds nothing: $shown"
  [[ $shown == *'error['* && $shown != *$'\e'* ]] || failed "colours in a pipe: $shown"
  echo "colours: on at a console, off with NO_COLOR and in a pipe"
}

# status_codes: the status codes that the plugin explains have the values of mingw's headers, which lack those of the Host Compute System and
# two that came with Windows 8; so do the names that it writes beside others, as far as the headers have them.
status_codes() {
  local table=crates/rules/src count
  awk 'NR == FNR { named[$1]; next } $2 in named' <(grep -ohE '\b[A-Z][A-Za-z_]+\b' crates/rules/data/*.yaml "$table"/*.rs) "$table/windows.txt" | grep -Ev ' (HCS_E|HCN_E|CLR|EXCEPTION_COMPLUS|EXCEPTION_MSC|COR_E|XACT_E|ERROR_INCORRECT_ACCOUNT_TYPE|ERROR_DS_SPN_VALUE_NOT_UNIQUE_IN_FOREST)' >"$folder/status-codes"
  count=$(wc -l <"$folder/status-codes")
  ((count > 100)) || failed "only $count status codes in $table"
  {
    printf '#define WIN32_NO_STATUS\n#include <winsock2.h>\n#include <windows.h>\n#undef WIN32_NO_STATUS\n#include <ntstatus.h>\n#include <lmerr.h>\n#include <winhttp.h>\n'
    awk '{ printf "_Static_assert((unsigned)%s == 0x%s, \"%s\");\n", $2, $1, $2 }' "$folder/status-codes"
    # Mingw's value of this one differs from Windows' own header.
    grep -v ' STATUS_PKU2U_CERT_FAILURE$' "$table/windows.txt" | awk '{ printf "#ifdef %s\n_Static_assert((unsigned)%s == 0x%s, \"%s\");\n#endif\n", $2, $2, $1, $2 }'
  } | x86_64-w64-mingw32-gcc -fsyntax-only -x c - || failed "$table: other values than mingw's headers have"
  echo "status codes: $count, and the names of others, are those of mingw's headers"
}

# suite WORD...: the plugin's tests. What they print is also in the log.
suite() {
  cargo test --locked --target "$TARGET" --package kubectl-gmsa -- "$@" 2>&1 | tee "$log"
}

status_codes
prepare
name=CARGO_TARGET_${TARGET^^}
export "${name//-/_}_RUNNER=$wine"
# Every program that a test starts has Wine's server do most of its work: more tests at a time take no less.
export RUST_TEST_THREADS=2
log=$folder/wine-tests.log
# About once in a thousand times, Wine fails to start a program, with an error code that Windows does not use for it (ERROR_INTERNAL_ERROR).
# Then the suite runs once more, a test at a time. No other failure is repeated.
if ! suite "$@"; then
  grep -q 'Os { code: 1359' "$log" || exit 1
  echo "windows: Wine did not start a program; the suite runs once more, a test at a time" >&2
  suite --test-threads=1 "$@"
fi
colours
