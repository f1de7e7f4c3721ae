# SPDX-License-Identifier: BSD-3-Clause
"""Reads with VTK's reader of XDMF the series that examples/formats has written into the folder of its argument."""
import sys

import h5py
import numpy as np
import vtk
from vtk.util.numpy_support import vtk_to_numpy

folder = sys.argv[1]
reader = vtk.vtkXdmfReader()
reader.SetFileName(f"{folder}/wave.xdmf")
reader.UpdateInformation()
times = reader.GetOutputInformation(0).Get(vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS())
assert times == tuple(0.5 * k for k in range(8)), times
with h5py.File(f"{folder}/wave.h5") as file:
    wanted = file["fields/height"][:]
for step, time in enumerate(times):
    reader.UpdateTimeStep(time)
    image = reader.GetOutputDataObject(0)
    while image.IsA("vtkMultiBlockDataSet"):
        image = image.GetBlock(0)
    assert image.GetDimensions() == (120, 90, 1), image.GetDimensions()
    assert np.allclose(image.GetSpacing()[:2], (0.2, 0.2)), image.GetSpacing()
    got = vtk_to_numpy(image.GetPointData().GetArray("fields/height")).reshape(90, 120)
    assert np.array_equal(got, wanted[step]), step
print("VTK", vtk.vtkVersion().GetVTKVersion(), "reads the series")
