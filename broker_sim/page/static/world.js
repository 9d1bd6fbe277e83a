// The state of a moment as a Map of parts by name, assembled from changes; and comparisons of two states.

import { rate } from "page/words.js";

const KINDS = ["broker", "link", "fault", "partition", "purgatory", "group", "transaction", "producer"];

export class World {
  constructor(atMs = 0, parts = new Map()) {
    this.atMs = atMs;
    this.parts = parts;
    this.kinds = null;
  }

  // Returns the world after a change; this one is not modified, and unchanged parts are shared.
  after(change) {
    const parts = new Map(this.parts);
    for (const name of change.gone) parts.delete(name);
    for (const [name, part] of Object.entries(change.set)) parts.set(name, part);
    return new World(change.at_ms, parts);
  }

  // Returns the parts of one kind, such as "broker", in a stable order.
  all(kind) {
    if (this.kinds === null) {
      this.kinds = Object.fromEntries(KINDS.map((name) => [name, []]));
      for (const [name, part] of this.parts) {
        const end = name.indexOf("/");
        this.kinds[end < 0 ? name : name.slice(0, end)]?.push(part);
      }
      this.kinds.broker.sort((one, other) => one.id - other.id);
    }
    return this.kinds[kind];
  }

  get cluster() {
    return this.parts.get("cluster") ?? null;
  }

  get requests() {
    return this.parts.get("requests") ?? [];
  }

  // Returns every parked operation that is shown, with its purgatory and a unique key.
  get parked() {
    if (this.operations === undefined) {
      this.operations = this.all("purgatory").flatMap((purgatory) =>
        [...purgatory.parked, ...othersIn(purgatory)].map((one) => ({
          ...one, broker: purgatory.broker, purgatory: purgatory.name,
          key: `${purgatory.broker}/${purgatory.name}/${one.id}`,
        })));
      this.operations.sort((one, other) => one.due_ms - other.due_ms);
    }
    return this.operations;
  }

  total(kind, field) {
    return this.all(kind).reduce((sum, part) => sum + (part[field] ?? 0), 0);
  }
}

// Returns the operations of the selected bucket that are not among those with the nearest deadlines.
function othersIn(purgatory) {
  const ids = new Set(purgatory.in_bucket && purgatory.parked.map((one) => one.id));
  return (purgatory.in_bucket ?? []).filter((one) => !ids.has(one.id));
}

// Returns the parked operations that ended between two worlds, each with how it ended, as far as the pictures show:
// `atMs` is when it ended at the latest, `notBeforeMs` at the earliest.
export function endings(before, after) {
  const waiting = new Set(after.parked.map((one) => one.key));
  const limits = new Map(after.all("purgatory").map((one) => [
    `${one.broker}/${one.name}`, one.num_delayed > one.parked.length ? one.parked.at(-1)?.due_ms ?? 0 : Infinity]));
  const ended = [];
  for (const one of before.parked) {
    const limit = limits.get(`${one.broker}/${one.purgatory}`);
    if (waiting.has(one.key) || limit === undefined || one.due_ms >= limit) continue;
    const counts = countsBetween(`purgatory/${one.broker}/${one.purgatory}`, before, after);
    const growth = grown(one, before, after);
    const expired = one.due_ms <= after.atMs && counts.expired > 0 && (counts.completed === 0 || !growth);
    const atMs = Math.min(after.atMs, Math.max(one.due_ms, before.atMs));
    ended.push({
      ...one, atMs, notBeforeMs: expired ? atMs : Math.min(before.atMs, atMs), expired,
      by: expired ? "its timeout expired" : growth ?? `it waited for ${one.waits_for}`,
    });
  }
  return ended;
}

// Returns the numbers of a purgatory's operations that completed and expired between two worlds.
function countsBetween(name, before, after) {
  const [old, now] = [before.parts.get(name), after.parts.get(name)];
  // A restarted broker counts from zero.
  const count = (field) => Math.max((now?.[field] ?? 0) - (old?.[field] ?? 0), 0);
  return { completed: count("completed"), expired: count("expired") };
}

// Returns how many operations completed and expired a second between two worlds.
export function ratesOf(before, after) {
  const seconds = (after.atMs - before.atMs) / 1000;
  if (seconds <= 0) return null;
  const counts = after.all("purgatory").map((one) => countsBetween(`purgatory/${one.broker}/${one.name}`, before, after));
  const total = (field) => counts.reduce((sum, one) => sum + one[field], 0);
  return { completed: rate(total("completed") / seconds), expired: rate(total("expired") / seconds) };
}

// Returns a text on what grew in a partition for which the operation waited, or null.
function grown(operation, before, after) {
  if (!["Produce", "Fetch", "ShareFetch"].includes(operation.purgatory)) return null;
  for (const key of operation.keys) {
    const name = `partition/${key.slice(0, key.lastIndexOf("-"))}/${key.slice(key.lastIndexOf("-") + 1)}`;
    const [old, now] = [before.parts.get(name), after.parts.get(name)].map(
      (partition) => partition?.replicas.find((replica) => replica.broker === partition.leader));
    if (!old || !now) continue;
    if (now.high_watermark > old.high_watermark) return `the high watermark of ${key} rose to ${now.high_watermark}`;
    if (now.log_end_offset > old.log_end_offset) return `records up to offset ${now.log_end_offset - 1} came to ${key}`;
  }
  return null;
}
