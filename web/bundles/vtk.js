// What the portal's view of a volume needs of VTK.
import "@kitware/vtk.js/Rendering/OpenGL/Profiles/Geometry";
import "@kitware/vtk.js/Rendering/OpenGL/Profiles/Volume";

export { default as vtkDataArray } from "@kitware/vtk.js/Common/Core/DataArray";
export { default as vtkImageData } from "@kitware/vtk.js/Common/DataModel/ImageData";
export { default as vtkPiecewiseFunction } from "@kitware/vtk.js/Common/DataModel/PiecewiseFunction";
export { default as vtkColorTransferFunction } from "@kitware/vtk.js/Rendering/Core/ColorTransferFunction";
export { default as vtkCubeAxesActor } from "@kitware/vtk.js/Rendering/Core/CubeAxesActor";
export { default as vtkVolume } from "@kitware/vtk.js/Rendering/Core/Volume";
export { default as vtkVolumeMapper } from "@kitware/vtk.js/Rendering/Core/VolumeMapper";
export { default as vtkGenericRenderWindow } from "@kitware/vtk.js/Rendering/Misc/GenericRenderWindow";
