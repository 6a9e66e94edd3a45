#!/usr/bin/env bash
# The real window, without a screen: opens each panel under Xvfb, waits until it shows pictures of the demo model, and takes a screenshot.
#
#   e2e/window.sh PROGRAM OUT [PANEL…]
#
# OUT gets PANEL.png for each panel, by default all of them. Fails if a panel stays blank or the program ends by itself.
set -euo pipefail
program=${1:?usage: e2e/window.sh PROGRAM OUT [PANEL…]}
out=${2:?usage: e2e/window.sh PROGRAM OUT [PANEL…]}
shift 2
[ $# -gt 0 ] || set -- chain time-difference bits self-conditioning one-bit captions train
mkdir -p "$out"
# Both are ImageMagick's; another program may be called convert too.
convert=$(dirname "$(command -v import)")/convert
: "${XDG_RUNTIME_DIR:=$(mktemp -d)}"
export XDG_RUNTIME_DIR
# The studio keeps its settings there: each run starts afresh.
XDG_CONFIG_HOME=$(mktemp -d)
export XDG_CONFIG_HOME
unset WAYLAND_DISPLAY

exec 3< <(exec Xvfb -displayfd 1 -screen 0 1280x800x24 2>/dev/null)
xvfb=$!
trap 'kill "$xvfb" 2>/dev/null || true' EXIT
read -r -t 20 -u 3 number || { echo "Xvfb did not start" >&2; exit 1; }
export DISPLAY=:$number

# Pixels that have one of the six colours that shapes have, each counted once: "colours pixels".
palette() {
    "$convert" "$1" -depth 8 -define histogram:unique-colors=true -format '%c' histogram:info:- |
        grep -E '\((220,50,47|44,160,70|38,110,220|240,190,30|150,80,190|250,130,40)[,)]' |
        awk -F: '{ n += $1 } END { print NR + 0, n + 0 }'
}

for panel in "$@"; do
    "$program" --panel "$panel" 2>"$out/$panel.log" &
    window=$!
    shown=no
    for _ in $(seq 60); do
        sleep 1
        if ! kill -0 "$window" 2>/dev/null; then
            echo "the window closed by itself:" >&2
            cat "$out/$panel.log" >&2
            exit 1
        fi
        import -window root "$out/$panel.png"
        read -r colours pixels < <(palette "$out/$panel.png")
        # Clean pictures: most colours, on thousands of pixels.
        if [ "$panel" = bits ] || [ "$panel" = one-bit ] || [ "$panel" = train ]; then
            # These show plots or words at first: many colours other than the background's one.
            [ "$("$convert" "$out/$panel.png" -format '%k' info:)" -gt 100 ] && shown=yes && break
        elif [ "$colours" -ge 4 ] && [ "$pixels" -gt 8000 ]; then
            shown=yes
            # Let it play to its end.
            sleep 6
            import -window root "$out/$panel.png"
            break
        fi
    done
    kill "$window" 2>/dev/null || true
    wait "$window" 2>/dev/null || true
    [ "$shown" = yes ] || { echo "$panel shows no pictures: see $panel.png and $panel.log in $out" >&2; exit 1; }
    echo "$panel: ok"
done
