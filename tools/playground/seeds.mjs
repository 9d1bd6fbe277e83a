// Runs seeds of the examples under Node, in the Python of the site: node seeds.mjs SITE COUNT; prints their digests as JSON.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , site, count] = process.argv;
const load = (name) => import(pathToFileURL(path.join(site, name)).href);
const { boot, call } = await load("boot.js");
const { loadPyodide } = await load("pyodide/pyodide.mjs");
const python = await boot(loadPyodide, async (name) => new Uint8Array(fs.readFileSync(path.join(site, name))), { stdout: () => {} });
const { examples } = JSON.parse(fs.readFileSync(path.join(site, "examples.json"), "utf8"));
const digests = {};
for (const module of Object.keys(examples).filter((name) => name !== "shop")) {
  const { tests } = call(python, "use", JSON.stringify({ [module]: examples[module], shop: examples.shop }));
  for (const test of tests) for (let seed = 0; seed < Number(count); seed += 1) {
    const { digest, invariant } = call(python, "run_seed", `${module}:${test}`, "{}", seed);
    digests[`${module}:${test} ${seed}`] = [digest, invariant];
  }
}
console.log(JSON.stringify(digests));
