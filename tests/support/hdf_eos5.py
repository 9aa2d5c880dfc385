"""Files of HDF-EOS 5, written with h5py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

GRID = """GROUP=SwathStructure
END_GROUP=SwathStructure
GROUP=GridStructure
\tGROUP=GRID_1
\t\tGridName="Ozone"
\t\tXDim={width}
\t\tYDim={height}
\t\tUpperLeftPointMtrs={upper_left}
\t\tLowerRightMtrs={lower_right}
\t\tProjection={projection}
\t\tProjParams={parameters}
{more}\t\tGridOrigin={origin}
\t\tGROUP=Dimension
\t\t\tOBJECT=Dimension_1
\t\t\t\tDimensionName="Level"
\t\t\t\tSize=2
\t\t\tEND_OBJECT=Dimension_1
\t\tEND_GROUP=Dimension
\t\tGROUP=DataField
\t\t\tOBJECT=DataField_1
\t\t\t\tDataFieldName="Column"
\t\t\t\tDataType=H5T_NATIVE_FLOAT
\t\t\t\tDimList={dims}
\t\t\t\tMaxdimList={dims}
\t\t\tEND_OBJECT=DataField_1
\t\tEND_GROUP=DataField
\tEND_GROUP=GRID_1
END_GROUP=GridStructure
END
"""
GEOGRAPHIC = {
    "width": 24,
    "height": 12,
    "upper_left": "(-180000000.000000,90000000.000000)",
    "lower_right": "(180000000.000000,-90000000.000000)",
    "projection": "HE5_GCTP_GEO",
    "parameters": "()",
    "more": "",
    "origin": "HE5_HDFE_GD_UL",
    "dims": '("Level","YDim","XDim")',
}
SWATH = """GROUP=SwathStructure
\tGROUP=SWATH_1
\t\tSwathName="Scan"
\t\tGROUP=Dimension
\t\t\tOBJECT=Dimension_1
\t\t\t\tDimensionName="GeoTrack"
\t\t\t\tSize={count}
\t\t\tEND_OBJECT=Dimension_1
\t\t\tOBJECT=Dimension_2
\t\t\t\tDimensionName="GeoXtrack"
\t\t\t\tSize={count}
\t\t\tEND_OBJECT=Dimension_2
\t\t\tOBJECT=Dimension_3
\t\t\t\tDimensionName="Track"
\t\t\t\tSize={rows}
\t\t\tEND_OBJECT=Dimension_3
\t\t\tOBJECT=Dimension_4
\t\t\t\tDimensionName="Xtrack"
\t\t\t\tSize={columns}
\t\t\tEND_OBJECT=Dimension_4
\t\tEND_GROUP=Dimension
\t\tGROUP=DimensionMap
\t\t\tOBJECT=DimensionMap_1
\t\t\t\tGeoDimension="GeoTrack"
\t\t\t\tDataDimension="Track"
\t\t\t\tOffset=2
\t\t\t\tIncrement=5
\t\t\tEND_OBJECT=DimensionMap_1
\t\t\tOBJECT=DimensionMap_2
\t\t\t\tGeoDimension="GeoXtrack"
\t\t\t\tDataDimension="Xtrack"
\t\t\t\tOffset=2
\t\t\t\tIncrement=5
\t\t\tEND_OBJECT=DimensionMap_2
\t\tEND_GROUP=DimensionMap
\t\tGROUP=GeoField
\t\t\tOBJECT=GeoField_1
\t\t\t\tGeoFieldName="Latitude"
\t\t\t\tDimList=("GeoTrack","GeoXtrack")
\t\t\tEND_OBJECT=GeoField_1
\t\t\tOBJECT=GeoField_2
\t\t\t\tGeoFieldName="Longitude"
\t\t\t\tDimList=("GeoTrack","GeoXtrack")
\t\t\tEND_OBJECT=GeoField_2
\t\tEND_GROUP=GeoField
\t\tGROUP=DataField
\t\t\tOBJECT=DataField_1
\t\t\t\tDataFieldName="Radiance"
\t\t\t\tDimList=("Track","Xtrack")
\t\t\tEND_OBJECT=DataField_1
\t\tEND_GROUP=DataField
\tEND_GROUP=SWATH_1
END_GROUP=SwathStructure
END
"""
COLUMN = "/HDFEOS/GRIDS/Ozone/Data Fields/Column"
RADIANCE = "/HDFEOS/SWATHS/Scan/Data Fields/Radiance"


def write_grid(path: Path, parts: int = 1, **values: Any) -> Path:
    """Write a global grid of 12 x 24 pixels of 15 degrees; `values` replace those of its text."""
    column = np.arange(2 * 12 * 24, dtype="f4").reshape(2, 12, 24)
    return write(path, GRID.format(**GEOGRAPHIC | values), {COLUMN: column}, parts)


def write_swath(path: Path, latitude: Any, longitude: Any, **values: Any) -> Path:
    """Write a swath whose square tie points belong to each fifth pixel; `values` are sizes."""
    count = len(latitude)
    sizes = {"count": count, "rows": 5 * count, "columns": 5 * count} | values
    radiance = np.arange(25 * count**2, dtype="f4").reshape(5 * count, 5 * count)
    folder = "/HDFEOS/SWATHS/Scan/Geolocation Fields"
    arrays = {
        f"{folder}/Latitude": latitude,
        f"{folder}/Longitude": longitude,
        RADIANCE: radiance,
    }
    return write(path, SWATH.format(**sizes), arrays, 1)


def write(path: Path, text: str, arrays: dict[str, Any], parts: int) -> Path:
    """Write arrays and a StructMetadata in so many parts."""
    step = -(-len(text) // parts)
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
        for part in range(parts):
            piece = text[part * step : (part + 1) * step].encode()
            file[f"HDFEOS INFORMATION/StructMetadata.{part}"] = np.bytes_(piece)
    return path
