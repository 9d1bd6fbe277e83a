// Compiles the site's Python to byte code, by the Python that will run it: node compile.mjs SITE
//
// Only what a first search and the lessons import becomes byte code, which is twice as large as sources; a program that
// imports something else compiles it then.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const site = path.resolve(process.argv[2]);
const load = (name) => import(pathToFileURL(path.join(site, name)).href);
const read = (name) => new Uint8Array(fs.readFileSync(path.join(site, name)));
const { boot, call } = await load("boot.js");
const { loadPyodide } = await load("pyodide/pyodide.mjs");

const python = await boot(loadPyodide, async (name) => read(name));
const { commit_before_work: program, shop } = JSON.parse(fs.readFileSync(path.join(site, "examples.json"), "utf8")).examples;
call(python, "use", JSON.stringify({ commit_before_work: program, shop }));
call(python, "run_seed", "commit_before_work:test_wrong", "{}", 0);
python.runPython(`
import importlib._bootstrap_external as bootstrap, importlib.util, sys, zipfile
imported = {module.__spec__.origin for module in list(sys.modules.values()) if getattr(module, "__spec__", None)}

def compile_archive(place, is_whole):
    with zipfile.ZipFile("/sources.zip") as read, zipfile.ZipFile("/result.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as write:
        for name in read.namelist():
            data, file = read.read(name), f"{place}/{name}"
            if name.endswith(".py") and (is_whole or file in imported):
                code = compile(data, file, "exec", dont_inherit=True)
                data = bytes(bootstrap._code_to_hash_pyc(code, importlib.util.source_hash(data), False))
                name += "c"
            write.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
`);
const place = "/lib/python3.14/site-packages";
const archives = { "packages.zip": [place, false], "lessons.zip": [place, true], "pyodide/python_stdlib.zip": ["/lib/python314.zip", false] };
const compileArchive = python.globals.get("compile_archive");
for (const [name, [of, isWhole]] of Object.entries(archives)) {
  python.FS.writeFile("/sources.zip", read(name));
  compileArchive(of, isWhole);
  fs.writeFileSync(path.join(site, name), python.FS.readFile("/result.zip"));
}
