// The live cluster: its pictures as server-sent events while the page is visible.

const RETRY_MS = 1_000;
const TOKEN = "broker-sim-token";

export class Live {
  constructor(onChange, onState) {
    this.onChange = onChange;
    this.onState = onState;
    this.query = "";
    this.abort = null;
    this.token = new URLSearchParams(location.hash.slice(1)).get("token") ?? sessionStorage.getItem(TOKEN) ?? "";
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.start()));
  }

  headers = () => (this.token ? { Authorization: `Bearer ${this.token}` } : {});

  setToken(token) {
    this.token = token;
    sessionStorage.setItem(TOKEN, token);
  }

  // Returns the control port's verbs and tokens; null if it needs another token.
  async session() {
    const response = await fetch("/page/session", { headers: this.headers() });
    return response.status === 401 ? null : response.json();
  }

  start() {
    if (this.abort || document.hidden) return;
    this.abort = new AbortController();
    this.follow(this.abort.signal);
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
    this.onState("asleep");
  }

  // Starts a new stream of the selection in `query`: partitions by `search`, a bucket by `level` and `bucket`.
  restart(query) {
    this.query = new URLSearchParams(query);
    this.abort?.abort();
    this.abort = null;
    this.start();
  }

  async follow(signal) {
    while (!signal.aborted) {
      try {
        const response = await fetch(`/page/stream?${this.query}`, { headers: this.headers(), signal });
        if (!response.ok) throw new Error(response.statusText);
        this.onState("live");
        await this.read(response.body.getReader());
      } catch {
        // The cluster has ended or is restarting: try again.
      }
      if (signal.aborted) return;
      this.onState("lost");
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let text = "";
    let isFirst = true;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        this.onChange(JSON.parse(event.slice("data: ".length)), isFirst);
        isFirst = false;
      }
    }
  }
}
