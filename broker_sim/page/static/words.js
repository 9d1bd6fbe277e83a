// Formats numbers and times.

export function number(value) {
  if (value === null || value === undefined) return "–";
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

export function rate(value) {
  if (value >= 100) return number(Math.round(value));
  return value >= 10 ? value.toFixed(0) : value.toFixed(1);
}

// A duration: 12 ms, 8 s, 1.25 s, 3 min 20 s.
export function duration(ms) {
  const size = Math.abs(ms);
  if (size < 1000) return `${Math.round(ms)} ms`;
  if (size < 60_000 && ms % 1000 === 0) return `${ms / 1000} s`;
  if (size < 10_000) return `${(ms / 1000).toFixed(2)} s`;
  if (size < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  if (size < 7_200_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let index = 0;
  let size = value;
  while (size >= 1000 && index < units.length - 1) {
    size /= 1000;
    index += 1;
  }
  return `${index && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[index]}`;
}

export function plural(count, word) {
  return `${number(count)} ${word}${count === 1 ? "" : "s"}`;
}

// The name of an API as in the protocol: Produce for PRODUCE.
export function apiName(name) {
  return name.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase());
}

// Kafka's names of its purgatories, and the colour each has everywhere on the page.
export const PURGATORIES = [
  "Produce", "Fetch", "ShareFetch", "DeleteRecords", "ElectLeader", "Rebalance", "Heartbeat", "ThrottledChannel",
];

export function colour(purgatory) {
  const index = PURGATORIES.indexOf(purgatory);
  return `var(--purgatory-${index < 0 ? PURGATORIES.length : index})`;
}
