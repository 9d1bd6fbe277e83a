// A recorded run in memory: its pictures by time, its events, and the requests in flight.

import { eventsBetween } from "page/events.js";
import { duration } from "page/words.js";
import { endings, World } from "page/world.js";

const KEEP_EVERY = 40;

// Returns the values in the file, which has them as base64 of compressed JSON.
export async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

export class Recorded {
  constructor(data) {
    Object.assign(this, data);
    this.kept = [];
    for (const one of this.requests) one.client = laneOf(one.client);
    this.requests.sort((one, other) => one.at_ms - other.at_ms);
    this.kinds = new Set();
    this.events = [];
    this.ended = [];
    this.read();
    if (data.ended.length) this.readEnds(data.ended);
    this.startMs = this.frames[0]?.at_ms ?? 0;
    const names = new Set(this.requests.map((one) => one.client));
    this.clients = [...names].filter((name) => brokerOf(name) === null).sort();
    const parts = this.frames.flatMap((frame) => Object.keys(frame.set));
    this.brokers = [...new Set([...this.requests.map((one) => one.broker), ...[...names, ...parts].map(brokerOf).filter((id) => id !== null)])].sort((one, other) => one - other);
    this.workers = [...new Set(this.bands.flatMap((band) => band.on).concat(this.moments.map((one) => one.who)).filter((name) => /^worker-/.test(name)))].sort();
  }

  // Goes through all pictures once: changes become events, operations that left a purgatory have ended.
  read() {
    let before = null;
    for (const [index, frame] of this.frames.entries()) {
      const after = (before ?? new World()).after(this.expanded(frame));
      for (const name of Object.keys(frame.set)) this.kinds.add(name.split("/")[0]);
      if (index % KEEP_EVERY === 0) this.kept.push(after);
      if (before) {
        this.events.push(...eventsBetween(before, after));
        this.ended.push(...endings(before, after));
      }
      before = after;
    }
    const isTold = (event) => event.kind !== "leader" && !/^ISR of/.test(event.text);
    this.events = [
      ...this.events.filter(isTold),
      ...this.moments.map((one) => ({ atMs: one.at_ms, about: one.who, kind: kindOf(one), text: `${one.who}: ${one.what}` })),
    ].sort((one, other) => one.atMs - other.atMs).map((event, id) => ({ ...event, id }));
  }

  // A trace is more precise on the ends of operations than two pictures.
  readEnds(ended) {
    this.ended = ended.map((one) => ({
      ...one, atMs: one.at_ms, key: `${one.broker}/${one.purgatory}/${one.id}`, client_id: one.client, operation: `Delayed${one.purgatory}`,
    }));
    this.events = this.events.concat(this.ended.map((one) => ({
      atMs: one.atMs, about: `broker/${one.broker}`, kind: "note",
      text: `${one.purgatory} of ${laneOf(one.client ?? "client")} on broker ${one.broker} ${one.expired ? "expired" : "ended"} after ${duration(one.atMs - one.since_ms)}: ${one.keys.join(", ")}, ${one.by}`,
    }))).sort((one, other) => one.atMs - other.atMs).map((event, id) => ({ ...event, id }));
  }

  // Returns the names whose events can be stepped through, by kind.
  names() {
    const last = (prefix) => [...new Set(this.frames.flatMap((frame) => Object.keys(frame.set)).filter((name) => name.startsWith(prefix)))]
      .map((name) => name.slice(prefix.length)).sort();
    const keys = last("partition/").map((name) => name.replace(/\/(\d+)$/, "-$1"));
    const partitions = new Set(keys.concat(this.ended.flatMap((one) => one.keys)).filter((name) => /-\d+$/.test(name)));
    const others = new Set(this.moments.map((one) => one.who).filter((who) => !this.workers.includes(who) && !this.clients.includes(who)));
    return {
      Brokers: this.brokers.map((id) => `broker ${id}`), Partitions: [...partitions].sort(), Groups: last("group/").map((name) => `group ${name}`),
      Clients: [...new Set([...this.workers, ...this.clients])].sort(), "Others in the time line": [...others].sort(),
    };
  }

  // Returns the times of a name's events, for a client also of its requests; without a name, of all events.
  timesOf(name) {
    const word = new RegExp(`(^|[^\\w-])${name.replace(/[^\w ]/g, "\\$&")}($|[^\\w-])`);
    const times = this.events.filter((one) => name === "" || one.about.replace(/^broker\//, "broker ") === name || word.test(one.text)).map((one) => one.atMs);
    if (name !== "") for (const one of this.requests) if (one.client === name) times.push(one.at_ms);
    return times.sort((one, other) => one - other);
  }

  expanded(frame) {
    const set = {};
    for (const [name, part] of Object.entries(frame.set)) {
      set[name] = part.parked ? { ...part, parked: part.parked.map((index) => this.operations[index]) } : part;
    }
    return { ...frame, set };
  }

  worldAt(ms) {
    const index = Math.max(lastBefore(this.frames, ms, (frame) => frame.at_ms), 0);
    let world = this.kept[Math.floor(index / KEEP_EVERY)] ?? new World();
    for (let at = index - (index % KEEP_EVERY) + 1; at <= index; at += 1) world = world.after(this.expanded(this.frames[at]));
    const parts = new Map(world.parts);
    parts.set("requests", this.requestsUntil(ms));
    return new World(ms, parts);
  }

  // Returns the numbers of clients' answered requests up to a time, as the live cluster counts them.
  requestsUntil(ms) {
    const rows = new Map();
    for (const one of this.requests) {
      if (one.at_ms > ms) break;
      if (one.elapsed_ms === null || one.at_ms + one.elapsed_ms > ms || brokerOf(one.client) !== null) continue;
      const key = `${one.api}/${one.client}`;
      const row = rows.get(key) ?? { api: one.api, client_id: one.client, count: 0, elapsed_ms: 0, errors: {} };
      rows.set(key, row);
      row.count += 1;
      row.elapsed_ms += one.elapsed_ms;
      for (const error of one.errors) row.errors[error] = (row.errors[error] ?? 0) + 1;
    }
    return [...rows.values()];
  }

  eventsUntil(ms) {
    return this.events.slice(0, lastBefore(this.events, ms, (event) => event.atMs) + 1);
  }
}

// Returns the index of the last item whose time is not after `ms`, -1 if there is none.
export function lastBefore(items, ms, timeOf) {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeOf(items[middle]) <= ms) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Returns the lane of a client: a follower's requests come from its broker.
function laneOf(client) {
  return client.replace(/^replica-(\d+)$/, "broker-$1");
}

// Returns the id in a lane such as "broker-1", and in a part such as "purgatory/1/Fetch"; null in others.
function brokerOf(name) {
  const match = /^(?:broker[-\/]|purgatory\/)(\d+)/.exec(name);
  return match ? Number(match[1]) : null;
}

function kindOf(moment) {
  if (moment.who === "FAULT") return "fault";
  return /error|died|killed|lost|fails|raise/i.test(moment.what) ? "bad" : "note";
}
