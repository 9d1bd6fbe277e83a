// Compiles a zip of Python packages to byte code, by the Python that will run it: node compile.mjs SOURCES RESULT

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , sources, result] = process.argv;
const require = createRequire(path.join(process.cwd(), "package.json"));
const { loadPyodide } = await import(pathToFileURL(require.resolve("pyodide")).href.replace("pyodide.js", "pyodide.mjs"));
const python = await loadPyodide();
python.FS.writeFile("/sources.zip", new Uint8Array(fs.readFileSync(sources)));
python.runPython(`
import importlib._bootstrap_external as bootstrap, importlib.util, zipfile
with zipfile.ZipFile("/sources.zip") as read, zipfile.ZipFile("/result.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as write:
    for name in read.namelist():
        data = read.read(name)
        if name.endswith(".py"):
            code = compile(data, "/lib/python3.14/site-packages/" + name, "exec", dont_inherit=True)
            data = bytes(bootstrap._code_to_hash_pyc(code, importlib.util.source_hash(data), False))
            name += "c"
        write.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
`);
fs.writeFileSync(result, python.FS.readFile("/result.zip"));
