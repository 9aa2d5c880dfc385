// What the portal's map of the sky needs of projections.
export { geoAitoff, geoMollweide } from "d3-geo-projection";
export {
  geoCircle,
  geoContains,
  geoDistance,
  geoGraticule,
  geoInterpolate,
  geoOrthographic,
  geoPath,
  geoRotation,
  geoStereographic,
} from "d3-geo";
