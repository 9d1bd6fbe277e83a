// The worker with Python, as the tabs see it: started with the first use, asked, and stopped at any moment.

export class Machine extends EventTarget {
  constructor() {
    super();
    this.worker = null;
    this.waiting = new Map();
    this.count = 0;
    this.startedAt = 0;
  }

  // Returns what Python tells of itself, once it is ready; starts it if it is not there.
  start() {
    if (this.worker) return this.ready;
    this.startedAt = performance.now();
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.ready = new Promise((done, failed) => {
      this.worker.onmessage = ({ data }) => this.take(data, done, failed);
      this.worker.onerror = (event) => failed(new Error(event.message ?? "the worker could not be loaded"));
    });
    this.ready.catch((error) => {
      this.worker = null;
      this.tell("failed", error.message);
    });
    this.tell("starting");
    return this.ready;
  }

  take({ kind, id, value, error }, done, failed) {
    if (kind === "answer") {
      const [answer, refuse] = this.waiting.get(id);
      this.waiting.delete(id);
      if (error === undefined) answer(value);
      else refuse(new Error(error));
    } else if (kind === "ready") {
      this.readyMs = performance.now() - this.startedAt;
      done(value);
      this.tell("ready", value);
    } else if (kind === "failed") failed(new Error(value));
    else this.tell(kind, value);
  }

  tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }

  // Asks for one verb of the worker; rejects with StoppedError when it is stopped meanwhile.
  async ask(verb, value) {
    await this.start();
    return new Promise((answer, refuse) => {
      this.waiting.set((this.count += 1), [answer, refuse]);
      this.worker.postMessage({ id: this.count, verb, value });
    });
  }

  // Ends whatever runs, an endless loop too, and starts Python again.
  stop() {
    this.worker?.terminate();
    this.worker = null;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const [, refuse] of waiting) refuse(new StoppedError("stopped"));
    this.start();
  }
}

export class StoppedError extends Error {}
