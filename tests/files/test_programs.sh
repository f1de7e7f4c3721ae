#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=120.  Other programs read what examples/formats writes: ffmpeg its pictures, VTK its images, h5py its HDF5, VTK its
# XDMF; and examples/formats reads what h5py writes. What is missing here is
# skipped, with the reason. CHECK_PYTHON names a Python that has their modules.
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

python=${CHECK_PYTHON:-python3}
# needs MODULE: can be imported?
has() { "$python" -c "import $1" 2>"$scratch/why"; }
if has vtk; then
    check 'VTK reads the images' "$python" tests/files/read_vtk.py "$scratch/out"
else
    skip "VTK does not read the images: $python has no module vtk"
fi

if [[ ! -e $scratch/out/wave.h5 ]]; then
    skip 'no HDF5: the library is built without it'
elif has h5py; then
    check 'h5py reads the data sets' "$python" tests/files/read_hdf5.py read "$scratch/out"
    check 'h5py writes a file' "$python" tests/files/read_hdf5.py write "$scratch/out"
    for layout in 1x8 2x4 4x2 8x1; do
        check "h5py's file is read on $layout" launch/olyrun -n "${layout%x*}" -d "${layout#*x}" --timeout 60 \
            "${BUILD:-build}/tests/test_hdf5" "$scratch/out/other.h5"
    done
    if has 'vtk; vtk.vtkXdmfReader'; then
        check 'VTK reads the series' "$python" tests/files/read_xdmf.py "$scratch/out"
    else
        skip "VTK does not read XDMF: $python has no vtkXdmfReader"
    fi
else
    skip "h5py does not read HDF5: $python has no module h5py"
fi

echo "CHECK: $passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
