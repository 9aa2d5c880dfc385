// What the portal's map of the sky needs: projections, and the corners of HEALPix cells.
export { corners_nest as cornersOfCell } from "@hscmap/healpix";
export { geoAitoff, geoMollweide } from "d3-geo-projection";
export { geoGraticule, geoOrthographic, geoPath, geoStereographic } from "d3-geo";
