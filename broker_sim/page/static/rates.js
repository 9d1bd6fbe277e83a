// Rates of what the purgatories count.

import { rate } from "page/words.js";

// Returns how many operations completed and expired a second between two worlds.
export function ratesOf(before, after) {
  const seconds = (after.atMs - before.atMs) / 1000;
  if (seconds <= 0) return null;
  const old = new Map(before.all("purgatory").map((one) => [`${one.broker}/${one.name}`, one]));
  const change = (field) => after.all("purgatory").reduce(
    // A broker that was started again counts from zero.
    (sum, one) => sum + Math.max(one[field] - (old.get(`${one.broker}/${one.name}`)?.[field] ?? 0), 0), 0);
  return { completed: rate(change("completed") / seconds), expired: rate(change("expired") / seconds) };
}
