#!/usr/bin/env bash
# Checks everything, on a fresh Debian machine with rustup too: what is missing it installs.
#
#   ./check.sh          format, lints, documentation, native tests, the window, the page, the browser tests
#   ./check.sh quick    format, lints, native tests
#
# One line a stage, with its time. The first red stage stops the run and shows why. Everything built is kept in one folder outside
# the clone, BIT_DIFFUSION_CACHE (by default ~/.cache/bit-diffusion), so that the next run is quick.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

mode=${1:-all}
case $mode in all | quick) ;; *) echo "usage: ./check.sh [quick]" >&2; exit 2 ;; esac

cache=${BIT_DIFFUSION_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bit-diffusion}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
case $CARGO_TARGET_DIR in /*) ;; *) CARGO_TARGET_DIR=$PWD/$CARGO_TARGET_DIR ;; esac
export CARGO_TERM_COLOR=never
logs=$cache/logs
mkdir -p "$logs" "$cache/tools/bin" || exit 1
if [ -z "${XDG_RUNTIME_DIR:-}" ]; then
    # Mesa complains without one.
    export XDG_RUNTIME_DIR=$cache/run
    mkdir -p "$XDG_RUNTIME_DIR" && chmod 700 "$XDG_RUNTIME_DIR"
fi
PATH=$cache/tools/bin:$PATH
started=$SECONDS

have() { command -v "$1" >/dev/null 2>&1; }

# stage NAME COMMAND…: runs it into a log of that name; one line if it passes, the log's end and a stop if not.
stage() {
    local name=$1 begin=$SECONDS log
    log=$logs/${1// /-}.log
    shift
    if "$@" >"$log" 2>&1; then
        printf 'ok       %-24s %5d s\n' "$name" $((SECONDS - begin))
    else
        printf 'FAILED   %-24s %5d s\n\n' "$name" $((SECONDS - begin))
        tail -n 60 "$log"
        printf '\nThe whole log: %s\n' "$log"
        exit 1
    fi
}

skipped=()
skip() {
    skipped+=("$1")
    printf 'SKIPPED  %-24s %s\n' "$1" "$2"
}

# packages NAME…: installs Debian packages; where that is impossible, says which are missing and fails.
packages() {
    local missing=()
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    if ! have apt-get || [ "$(id -u)" != 0 ]; then
        echo "missing Debian packages: ${missing[*]} (run as root to have them installed)"
        return 1
    fi
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-remove --no-install-recommends "${missing[@]}"; } \
        >"$logs/packages.log" 2>&1 && return
    echo "apt-get could not install ${missing[*]}: $(tail -n 1 "$logs/packages.log")"
    return 1
}

# --- Native --------------------------------------------------------------------------------------------------------------

if ! have cc && ! missing=$(packages gcc libc6-dev); then
    echo "no C compiler to link with: $missing" >&2
    exit 1
fi
for component in rustfmt clippy; do
    have rustup && ! cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && rustup component add "$component"
done

native_tests() { cargo test --workspace --release --locked; }

# One command line for all of cargo, `--workspace` and the release profile, so that no dependency is compiled twice for the tests.
stage "format" cargo fmt --all --check
stage "clippy" cargo clippy --workspace --all-targets --release --locked -- -D warnings
if [ "$mode" = all ]; then
    stage "rustdoc" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --release --locked
fi
# Any graphics driver will do for the CPU-against-GPU tests; Mesa's is a software one.
if ! compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null && [ "$(uname)" = Linux ]; then
    missing=$(packages mesa-vulkan-drivers libvulkan1) || skip "GPU driver" "$missing"
fi
stage "native tests" native_tests
grep -o 'parity: [^S].*' "$logs/native-tests.log" | sed 's/^/         /'
# A test that lacks what it needs says so: NAME: SKIPPED, REASON.
while IFS= read -r line; do
    skip "${line%%: SKIPPED, *}" "${line#*: SKIPPED, }"
done < <(grep -o '[a-z ]*: SKIPPED, .*' "$logs/native-tests.log" | sed 's/^ *//' | sort -u)
awk '/^test result:/ { passed += $4; failed += $6 } END { printf "%d passed, %d failed\n", passed, failed }' "$logs/native-tests.log"

# The real window, on a screen that is none.
if [ "$mode" = all ] && [ "$(uname)" = Linux ]; then
    if { have Xvfb && have import; } ||
        missing=$(packages xvfb imagemagick libxkbcommon-x11-0 libxcursor1 libxi6 libxrandr2); then
        stage "window" e2e/window.sh "$CARGO_TARGET_DIR/release/bit-diffusion" "$logs/window"
    else
        skip "window" "$missing"
    fi
fi

finish() {
    if [ ${#skipped[@]} = 0 ]; then
        printf '\nAll green in %d s.\n' $((SECONDS - started))
    else
        printf '\nGreen in %d s, but %d SKIPPED:%s\n' $((SECONDS - started)) ${#skipped[@]} "$(printf ' %s.' "${skipped[@]}")"
    fi
    exit 0
}
[ "$mode" = quick ] && finish

# --- The page ------------------------------------------------------------------------------------------------------------

# Sets wasm=(…), what to put in front of a command that compiles for the browser; fails with the reason.
find_wasm_compiler() {
    wasm=(env -u NO_COLOR "CARGO_TARGET_DIR=$CARGO_TARGET_DIR-wasm")
    if have rustup && { rustup target list --installed | grep -qx wasm32-unknown-unknown ||
        timeout 120 rustup target add wasm32-unknown-unknown >"$logs/rustup.log" 2>&1; }; then
        return
    fi
    # Debian's compiler can build the standard library for the browser from its sources.
    missing=$(packages rustc-web cargo-web rust-web-src rust-web-llvm lld-22) || return 1
    ln -sf /usr/bin/lld-22 "$cache/tools/bin/rust-lld"
    wasm+=("PATH=/usr/bin:$PATH" RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_abort)
}

# tool NAME VERSION [FLAG…]: a command-line tool from crates.io, of exactly that version. It runs for seconds, so it is compiled quickly
# rather than well: trunk's own settings take ten minutes more.
tool() {
    local name=$1 version=$2 binary=${1%-cli}
    shift 2
    "$cache/tools/bin/$binary" --version 2>/dev/null | grep -q " $version\b" ||
        cargo install "$name" --version "$version" "$@" --root "$cache/tools" --target-dir "$cache/tools/target" --force \
            --config profile.release.lto=false --config profile.release.codegen-units=16
}

build_tools() {
    local bindgen
    bindgen=$(awk '$0 == "name = \"wasm-bindgen\"" { getline; gsub(/[^0-9.]/, ""); print }' Cargo.lock)
    # wasm-bindgen's own lock file no longer resolves, trunk resolves with its own only.
    tool wasm-bindgen-cli "$bindgen" && tool trunk 0.21.14 --locked
}

if find_wasm_compiler; then
    stage "page tools" build_tools
    dist=$CARGO_TARGET_DIR-wasm/dist
    stage "page" "${wasm[@]}" TRUNK_SKIP_VERSION_CHECK=true "$cache/tools/bin/trunk" build --release --locked --dist "$dist"
else
    skip "page" "no compiler for the browser: rustup cannot add wasm32-unknown-unknown, and $missing"
    skip "browser tests" "there is no page"
    finish
fi

# --- The page in a browser -------------------------------------------------------------------------------------------------

find_browser() {
    for CHROMIUM in chromium chromium-browser google-chrome; do
        CHROMIUM=$(command -v "$CHROMIUM") && return
    done
    missing=$(packages chromium) && CHROMIUM=/usr/bin/chromium
}

browser_tests() {
    (cd e2e && npm ci --no-audit --no-fund &&
        DIST=$dist CHROMIUM=$CHROMIUM PROGRAM=$CARGO_TARGET_DIR/release/bit-diffusion node --test --test-reporter=spec)
}

if ! have npm && ! missing=$(packages nodejs npm); then
    skip "browser tests" "$missing"
elif [ "$(node -p 'parseInt(process.versions.node)')" -lt 20 ]; then
    skip "browser tests" "Node.js 20 or newer is needed, this is $(node --version)"
elif ! find_browser; then
    skip "browser tests" "$missing"
else
    stage "browser tests" browser_tests
    # What the tests measured on the way: sizes, longest tasks, differences between devices.
    sed -n 's/^ *ℹ \(page\|longest\|values\)/         \1/p' "$logs/browser-tests.log"
    awk '/^ℹ pass/ { passed = $3 } /^ℹ fail/ { failed = $3 } END { printf "%d passed, %d failed\n", passed, failed }' "$logs/browser-tests.log"
fi
finish
