// Bundles VTK into one file for the portal, with the licences of all packages in it at its head:
// `node build.mjs OUTPUT`. Run it by `make vtk`.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const options = {
  entryPoints: ["entry.js"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  write: false,
};

/** Return the name, version and licence of a package, as its files say. */
function notice(name) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file ? readFileSync(`${folder}/${file}`, "utf8").trim() : "";
  return `${name} ${version}, ${license}\n\n${text}`;
}

const result = await build(options);
const inputs = Object.keys(result.metafile.inputs);
const packages = inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
const notices = [...new Set(packages.filter(Boolean))].sort().map(notice);
const head = notices.join("\n\n----\n\n").replaceAll("*/", "* /");
const banner = `/*! Made by \`make vtk\` from these packages:\n\n${head}\n*/\n`;
writeFileSync(process.argv[2], banner + result.outputFiles[0].text);
