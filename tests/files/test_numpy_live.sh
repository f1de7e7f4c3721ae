#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=120.  NumPy and Olympus read what the other one has written, now, with the NumPy of this machine: CHECK_PYTHON names the
# interpreter. Without NumPy: skipped (the files in tests/files/data are read all the same by test_numpy_files).
set -u
cd "$(dirname "$0")/../.." || exit
python=${CHECK_PYTHON:-python3} build=${BUILD:-build}
"$python" -c 'import numpy' 2>/dev/null || { echo "$python has no numpy: skipped"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
run() { launch/olyrun -n 2 -d 4 --timeout 60 "$@" </dev/null; }

"$python" tests/files/make-data "$scratch" || exit 1
NUMPY_FILES=$scratch run "$build/tests/test_numpy_files" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
run "$build/examples/files" "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
"$python" - "$scratch" <<'END'
import glob, os, sys
import numpy as np

folder = sys.argv[1]
passed = failed = 0


def check(what, good):
    global passed, failed
    passed, failed = passed + good, failed + (not good)
    print("ok   " if good else "FAIL ", what)


def same(a, b):
    return a.dtype == b.dtype.newbyteorder("=") and a.shape == b.shape and a.flags.c_contiguous and np.array_equal(a, b)


for back in sorted(glob.glob(os.path.join(folder, "back-*.npy"))):
    original = back.replace("back-", "")
    check(os.path.basename(original), same(np.load(back), np.load(original)))
check("wave.npy", same(np.load(os.path.join(folder, "wave.npy")), np.arange(48, dtype=np.float32).reshape(6, 8)))
volume = np.fromfile(os.path.join(folder, "volume.raw"), dtype=">u2", offset=512).reshape(4, 6, 5)
check("volume.raw", np.array_equal(volume, np.arange(120).reshape(4, 6, 5)))
table = np.loadtxt(os.path.join(folder, "table.csv"), delimiter=",", skiprows=1)
check("table.csv", np.array_equal(table, np.arange(6).reshape(3, 2) / 4))
with np.load(os.path.join(folder, "model.npz")) as model:
    check("model.npz", model.files == ["weights", "bias"] and same(model["bias"], np.arange(5, dtype=np.float32)))
    check("model.npz weights", same(model["weights"], np.arange(15, dtype=np.float32).reshape(3, 5)))
import zipfile

check("model.npz checksums", zipfile.ZipFile(os.path.join(folder, "model.npz")).testzip() is None)
check("number of files", passed > 40)
print(f"CHECK: {passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
END
