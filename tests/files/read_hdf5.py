# SPDX-License-Identifier: BSD-3-Clause
"""With h5py: writes files of many kinds into a folder (write FOLDER), or reads what examples/formats has written there (read FOLDER)."""
import sys

import h5py
import numpy as np

ROWS, COLUMNS = 90, 120


def wave(time):
    y, x = np.meshgrid((np.arange(ROWS) - ROWS // 2) * 0.2, (np.arange(COLUMNS) - COLUMNS // 2) * 0.2, indexing="ij")
    radius = np.sqrt(x * x + y * y)
    return np.cos(radius - time) / (1 + 0.3 * radius)


def read(folder):
    with h5py.File(f"{folder}/wave.h5") as file:
        height = file["fields/height"]
        assert height.shape == (8, ROWS, COLUMNS) and height.dtype == np.float32, height
        assert height.maxshape[0] is None
        for frame in range(8):
            assert np.allclose(height[frame], wave(0.5 * frame), atol=1e-4)
        assert np.array_equal(file["time"], 0.5 * np.arange(8))
        assert height.attrs["unit"] == "m" and np.array_equal(file.attrs["spacing"], [0.2, 0.2])
        assert file["high"].dtype == bool and np.array_equal(file["high"], height[7] > 0)


def write(folder):
    numbers = np.arange(77).reshape(11, 7)
    with h5py.File(f"{folder}/other.h5", "w") as file:
        for name in ("i1", "u2", "i4", "u8", "f4", "f8", "f2", ">i4", ">f8", "c8", "c16", "?"):
            file[f"types/{name}"] = (numbers % 2 if name == "?" else numbers).astype(name)
        file.create_dataset("packed", data=numbers.astype("f4"), chunks=(3, 2), compression="gzip", shuffle=True)
        file["long"] = numbers.astype(np.longdouble)
        file["text"] = "no numbers"
        file["number"] = 5.0
        file.attrs["title"] = "written by h5py"
        file.attrs["three"] = np.array([1, 2, 3], "i2")


{"read": read, "write": write}[sys.argv[1]](sys.argv[2])
print("h5py", h5py.__version__, sys.argv[1])
