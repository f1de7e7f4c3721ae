#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=120.  Other programs read what examples/formats writes: ffmpeg its pictures. What is missing here is skipped, with the
# reason.
set -u
cd "$(dirname "$0")/../.." || exit 1
examples=${BUILD:-build}/examples
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

# check NAME COMMAND...: the command succeeds.
check() {
    local name=$1
    shift
    if "$@" >"$scratch/why" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $name"
    else
        failed=$((failed + 1))
        echo "FAIL  $name: $*"
        tail -n 20 "$scratch/why"
    fi
}
skip() {
    skipped=$((skipped + 1))
    echo "skip  $1"
}

mkdir "$scratch/out"
check 'formats writes its files' launch/olyrun -n 2 -d 4 --timeout 60 "$examples/formats" "$scratch/out"

# The line in olympus/formats.h and docs/formats.md.
film() {
    (cd "$scratch/out" && ffmpeg -v error -framerate 25 -i wave-%05d.png -vf "pad=ceil(iw/2)*2:ceil(ih/2)*2" \
        -c:v libx264 -pix_fmt yuv420p film.mp4) || return
    [[ $(ffprobe -v error -count_frames -select_streams v -show_entries stream=nb_read_frames -of csv=p=0 "$scratch/out/film.mp4") == 8* ]]
}
if command -v ffmpeg >/dev/null; then
    check 'ffmpeg makes a film of the pictures' film
else
    skip 'no film: ffmpeg is missing'
fi

echo "CHECK: $passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
