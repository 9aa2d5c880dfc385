// Write the table of star names: node build.mjs OUTPUT
//
// The names are those of the IAU and older ones, with designations of Bayer, Flamsteed, Henry Draper,
// Gliese and Hipparcos. Positions are ICRS, J2000, in degrees with four decimals (0.2 arcseconds).
import { readFileSync, writeFileSync } from "node:fs";

const folder = new URL("node_modules/d3-celestial/", import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, folder)));
const { version } = read("package.json");
const names = read("data/starnames.json");
const places = new Map(
  read("data/stars.14.json").features.map(({ id, geometry }) => [id, geometry.coordinates]),
);

const plain = (text) => (text ?? "").replace(/[\s\u2009\u200e]+/gu, " ").trim();
const rows = [];
for (const [key, star] of Object.entries(names)) {
  const hip = Number(key);
  const place = places.get(hip);
  const { c: constellation } = star;
  const of = (label) => (label && constellation ? `${plain(label)} ${constellation}` : "");
  const labels = [star.name, of(star.bayer), of(star.flam), star.hd, star.gl].map(plain);
  if (place && labels.some(Boolean)) {
    const [longitude, latitude] = place;
    const degrees = [(longitude + 360) % 360, latitude].map((value) => value.toFixed(4));
    rows.push([hip, ...degrees, ...labels].join("\t"));
  }
}
rows.sort((a, b) => parseInt(a) - parseInt(b));
const head = [
  `# Stars of d3-celestial ${version}, (c) 2015 Olaf Frohn, BSD-3-Clause. Made by web/stars/build.mjs.`,
  "# hip\tra\tdec\tname\tbayer\tflamsteed\thd\tgliese",
];
writeFileSync(process.argv[2], [...head, ...rows, ""].join("\n"));
