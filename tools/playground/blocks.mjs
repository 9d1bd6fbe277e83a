// Runs programs that pages link to, under Node, in the Python of the site: node blocks.mjs SITE PROGRAMS; prints errors as JSON.
//
// PROGRAMS is a file with a list of what links carry: files, module and test. The first seed of each test is run.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , site, programs] = process.argv;
const load = (name) => import(pathToFileURL(path.join(site, name)).href);
const { boot, call } = await load("boot.js");
const { loadPyodide } = await load("pyodide/pyodide.mjs");
const python = await boot(loadPyodide, async (name) => new Uint8Array(fs.readFileSync(path.join(site, name))), { stdout: () => {} });
const errors = [];
for (const { files, module, test } of JSON.parse(fs.readFileSync(programs, "utf8"))) {
  const { error, tests } = call(python, "use", JSON.stringify(files));
  const outcome = error ?? (test ? call(python, "run_seed", `${module}:${test}`, "{}", 0) : {});
  if (error || (test && !tests.includes(test)) || outcome.text) errors.push({ module, test, text: outcome.text ?? "no such test" });
}
console.log(JSON.stringify(errors));
