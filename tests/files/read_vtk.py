# SPDX-License-Identifier: BSD-3-Clause
"""Reads with VTK what examples/formats has written into the folder of its argument, and compares it with the wave."""
import sys
import xml.etree.ElementTree

import numpy as np
import vtk
from vtk.util.numpy_support import vtk_to_numpy

ROWS, COLUMNS = 90, 120
folder = sys.argv[1]


def read(reader, name):
    reader.SetFileName(f"{folder}/{name}")
    reader.Update()
    assert reader.GetErrorCode() == 0, name
    image = reader.GetOutput()
    assert image.GetDimensions() == (COLUMNS, ROWS, 1), image.GetDimensions()
    assert image.GetSpacing()[:2] == (0.2, 0.2), image.GetSpacing()
    return image


def wave(time):
    y, x = np.meshgrid((np.arange(ROWS) - ROWS // 2) * 0.2, (np.arange(COLUMNS) - COLUMNS // 2) * 0.2, indexing="ij")
    radius = np.sqrt(x * x + y * y)
    return np.cos(radius - time) / (1 + 0.3 * radius)


for frame in range(8):
    image = read(vtk.vtkXMLImageDataReader(), f"wave-{frame:05d}.vti")
    points = image.GetPointData()
    height = vtk_to_numpy(points.GetScalars()).reshape(ROWS, COLUMNS)
    assert points.GetScalars().GetName() == "height" and height.dtype == np.float32
    assert np.allclose(height, wave(0.5 * frame), atol=1e-4)
    slope = vtk_to_numpy(points.GetVectors()).reshape(ROWS, COLUMNS, 3)
    assert np.allclose(slope[5, 1:-1, 0], height[5, 2:] - height[5, :-2])
    assert np.allclose(slope[1:-1, 5, 1], height[2:, 5] - height[:-2, 5])
    assert image.GetFieldData().GetArray("TimeValue").GetValue(0) == 0.5 * frame

pieces = read(vtk.vtkXMLPImageDataReader(), "pieces.pvti")
assert np.array_equal(vtk_to_numpy(pieces.GetPointData().GetArray("height")).reshape(ROWS, COLUMNS), height)

series = [(float(e.get("timestep")), e.get("file"))
          for e in xml.etree.ElementTree.parse(f"{folder}/wave.pvd").getroot().iter("DataSet")]
assert series == [(0.5 * k, f"wave-{k:05d}.vti") for k in range(8)], series
print("VTK", vtk.vtkVersion().GetVTKVersion(), "reads the images")
