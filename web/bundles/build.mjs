// Bundles packages into one file each for the portal, with the licences of all packages in it at its
// head: `node build.mjs FOLDER` makes them all. Run it by `make bundles`.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const ENTRIES = ["vtk.js", "openseadragon.js", "celestial.js"];

/** Return the name, version and licence of a package, as its files say. */
function notice(name) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file ? readFileSync(`${folder}/${file}`, "utf8").trim() : "";
  return `${name} ${version}, ${license}\n\n${text}`;
}

async function bundle(entry) {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    metafile: true,
    write: false,
  });
  const inputs = Object.keys(result.metafile.inputs);
  const packages = inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  const notices = [...new Set(packages.filter(Boolean))].sort().map(notice);
  const head = notices.join("\n\n----\n\n").replaceAll("*/", "* /");
  const banner = `/*! Made by \`make bundles\` from these packages:\n\n${head}\n*/\n`;
  writeFileSync(join(process.argv[2], entry), banner + result.outputFiles[0].text);
}

await Promise.all(ENTRIES.map(bundle));
