// What the portal's view of an image needs: tiles that are moved and zoomed.
export { default } from "openseadragon";
