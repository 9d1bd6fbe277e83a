// Starts Python with the packages; used by the worker, and by tests under Node.

const SITE_PACKAGES = "/lib/python3.14/site-packages";
const HOME = "/home/pyodide";
// CRC-32C over memory that both share: (bytes, length, checksum before) -> checksum. Source: crc32c.wat.
const CRC32C = "AGFzbQEAAAABCAFgA39/fwF/AhwCA2VudgZtZW1vcnkCAAEDZW52BXRhYmxlA38AAwIBAAcKAQZjcmMzMmMAAApMAUoBAn8gAkF/cyEDIAAgAWohBAJAA0AgACAETw0BIANBCHYjACADIAAtAABzQf8BcUECdGooAgBzIQMgAEEBaiEADAALCyADQX9zCw==";
const POLYNOMIAL = 0x82f63b78;

// Returns Python with the module `playground` imported. `get(name)` reads a file of the site as bytes.
export async function boot(loadPyodide, get, { indexURL, packages = "packages.zip", stdout } = {}) {
  const download = get(packages);
  const python = await loadPyodide({
    env: { AIOKAFKA_NO_EXTENSIONS: "1", HOME, PYTHONHASHSEED: "0" }, ...(indexURL ? { indexURL } : {}), stdout, stderr: stdout,
  });
  python.unpackArchive(await download, "zip", { extractDir: SITE_PACKAGES });
  python.runPython(`import os; os.environ["CRC32C_FUNCTION"] = "${addCrc32c(python._module)}"; import playground`);
  return python;
}

// Adds the scenarios that lessons play; `packages` are the bytes of lessons.zip.
export function addLessons(python, packages) {
  python.unpackArchive(packages, "zip", { extractDir: SITE_PACKAGES });
}

// Puts the function into the table of functions that Python calls by ctypes, and returns its place there.
function addCrc32c(module) {
  const { memory, wasmTable } = module;
  const address = module._malloc(1024);
  const table = new Uint32Array(memory.buffer, address, 256);
  for (let byte = 0; byte < 256; byte += 1) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    table[byte] = crc >>> 0;
  }
  const code = Uint8Array.from(atob(CRC32C), (character) => character.charCodeAt(0));
  const instance = new WebAssembly.Instance(new WebAssembly.Module(code), {
    env: { memory, table: new WebAssembly.Global({ value: "i32" }, address) },
  });
  const place = wasmTable.grow(1);
  wasmTable.set(place, instance.exports.crc32c);
  return place;
}

// Calls a function of the module `playground`, which returns JSON.
export function call(python, name, ...args) {
  const owner = python.globals.get("playground");
  const function_ = owner[name];
  try {
    return JSON.parse(function_(...args));
  } finally {
    function_.destroy();
    owner.destroy();
  }
}
