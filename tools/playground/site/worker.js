// Python, in a thread of its own: it may compute for minutes, and is ended from outside at any moment.

import { addLessons, boot, call } from "./boot.js";
import { loadPyodide } from "./pyodide/pyodide.mjs";

const say = (kind, value) => postMessage({ kind, value });
const here = (name) => new URL(name, import.meta.url).href;
const realFetch = self.fetch.bind(self);
let received = 0;

// Counts the bytes of every download, those that Pyodide makes too.
self.fetch = async (...args) => {
  const response = await realFetch(...args);
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
  const counted = response.body.pipeThrough(new TransformStream({
    transform(chunk, controller) {
      received += chunk.byteLength;
      say("bytes", received);
      controller.enqueue(chunk);
    },
  }));
  return new Response(counted, { headers: response.headers, status: response.status });
};

const get = async (name) => new Uint8Array(await (await self.fetch(here(name))).arrayBuffer());
let python = null;
let lessons = null;

const verbs = {
  // Runs seeds one after the other until one fails, and shrinks that one.
  search({ test, settings, first, last }) {
    for (let seed = first; seed <= last; seed += 1) {
      const outcome = call(python, "run_seed", test, settings, seed);
      say("seed", outcome);
      if (outcome.invariant) return verbs.examine({ test, settings, seed });
    }
    return null;
  },
  examine({ test, settings, seed }) {
    let runs = 0;
    return call(python, "examine", test, settings, seed, () => say("run", (runs += 1)));
  },
  recording: () => call(python, "recording"),
  use: (files) => call(python, "use", JSON.stringify(files)),
  check: ({ test, settings }) => call(python, "check", test, settings),
  cluster: ({ verb, value }) => call(python, "cluster", verb, JSON.stringify(value ?? {})),
  async lesson(name) {
    lessons ??= get("lessons.zip").then((packages) => addLessons(python, packages));
    await lessons;
    return call(python, "lesson", name);
  },
  wheel: ({ verb, value }) => call(python, "wheel", verb, value ?? 0),
};

onmessage = async ({ data: { id, verb, value } }) => {
  try {
    postMessage({ kind: "answer", id, value: await verbs[verb](value) });
  } catch (error) {
    postMessage({ kind: "answer", id, error: lastLine(error) });
  }
};

function lastLine(error) {
  return String(error.message ?? error).trim().split("\n").at(-1);
}

try {
  python = await boot(loadPyodide, get, { indexURL: here("pyodide/"), stdout: (text) => say("printed", text) });
  say("ready", { python: python.runPython("__import__('platform').python_version()"), heapBytes: python._module.memory.buffer.byteLength });
} catch (error) {
  say("failed", String(error.message ?? error));
}
