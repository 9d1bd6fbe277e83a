// Parked operations with what they wait for, and those that ended in the last seconds with the reason.

import { empty, h, heads, keyed, panel, setAttribute, setText } from "page/dom.js";
import { isChosen } from "page/wheel.js";
import { colour, duration, number } from "page/words.js";

const MOST_ROWS = 200;
const MOST_ENDED = 40;
const SHOWN_KEYS = 2;

export function makeOperations(context) {
  const { view } = context;
  const search = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter parked operations", oninput: () => {
    view.filter = search.value.toLowerCase();
    context.redraw();
  } });
  const rows = h("tbody");
  const chip = h("button", { class: "chip", hidden: true, onclick: () => context.selectBucket(null) });
  const nothing = empty("No operation is parked here.");
  const more = h("p", { class: "more" });
  const scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Parked operations", onscroll: () => context.retick() },
    h("table", { "aria-label": "Parked operations, those that are due first" }, h("thead", {}, h("tr", {}, heads("Operation", "Keys", "Waits for", "Age*", "Time left*"))), rows), nothing, more);
  const { element, count, aside } = panel("Waiting", null, scroll);
  aside.append(chip, search);
  return {
    element,
    draw(world) {
      const matching = world.parked.filter((one) => matches(one, view));
      const total = countOf(context);
      setText(count, number(total));
      nothing.hidden = matching.length > 0;
      chip.hidden = !view.bucket;
      if (view.bucket) setText(chip, `level ${view.bucket.level}, bucket ${view.bucket.index} ×`);
      setText(more, cutText(world, view, matching.length, total));
      const still = new Set(world.all("broker").filter((one) => one.state === "paused").map((one) => one.id));
      keyed(rows, matching.slice(0, MOST_ROWS), (one) => one.key, (one) => makeRow(one, context), (row, one) => {
        row.operation = one;
        setText(row.children[2], still.has(one.broker) ? `broker ${one.broker} to be resumed` : one.waits_for);
        setAttribute(row, "aria-selected", one.key === view.operation);
      });
    },
    tick(nowMs) {
      for (const row of rowsInView(rows, scroll)) drawTimes(row, nowMs);
    },
  };
}

// Returns the number of all operations in the selected purgatory and bucket, shown or not.
function countOf({ world, view, levels }) {
  if (view.bucket) return levels.find((one) => one.level === view.bucket.level)?.buckets.get(view.bucket.index) ?? 0;
  return world.all("purgatory").filter((one) => isChosen(one, view)).reduce((sum, one) => sum + one.num_delayed, 0);
}

// Returns a text on what the table leaves out.
function cutText(world, view, matching, total) {
  const known = world.parked.filter((one) => matches(one, { ...view, filter: "" })).length;
  if (view.filter && known < total) return `Searched among the ${number(known)} of ${number(total)} that are due first.`;
  const rows = Math.min(matching, MOST_ROWS);
  return rows < (view.filter ? matching : total) ? `${number(rows)} of ${number(view.filter ? matching : total)}, those that are due first.` : "";
}

function matches(one, view) {
  if (!isChosen({ broker: one.broker, name: one.purgatory }, view)) return false;
  if (view.bucket && (one.level !== view.bucket.level || one.bucket !== view.bucket.index)) return false;
  if (!view.filter) return true;
  return `${one.broker} ${one.purgatory} ${one.client_id} ${one.keys} ${one.waits_for}`.toLowerCase().includes(view.filter);
}

function makeRow(one, context) {
  const select = () => context.selectOperation(one.key);
  const count = one.keys.length + one.more_keys;
  const keys = count > SHOWN_KEYS ? `${one.keys[0]} and ${count - 1} more` : one.keys.join(", ");
  const mark = h("i", { class: "mark" });
  mark.style.background = colour(one.purgatory);
  const bar = h("div", { class: "bar" });
  bar.style.setProperty("--mark", colour(one.purgatory));
  return h("tr", {
    tabindex: 0, onclick: select,
    onkeydown: (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        select();
      }
    },
  },
  h("td", {}, h("div", { class: "who" }, mark, h("b", {}, one.purgatory), h("small", {}, `${one.client_id ?? one.operation} · broker ${one.broker}`))),
  h("td", { class: "keys", title: one.keys.join(", ") }, keys), h("td", { class: "words" }), h("td", { class: "number" }),
  h("td", { class: "left" }, h("span", { class: "number" }), bar));
}

// Returns the visible rows: only their times are updated.
function rowsInView(rows, scroll) {
  const [top, bottom] = [scroll.scrollTop, scroll.scrollTop + scroll.clientHeight];
  return [...rows.children].filter((row) => row.offsetTop < bottom && row.offsetTop + row.offsetHeight > top);
}

function drawTimes(row, nowMs) {
  const one = row.operation;
  const left = Math.max(one.due_ms - nowMs, 0);
  setText(row.children[3], duration(Math.max(nowMs - one.since_ms, 0)));
  const [text, bar] = row.children[4].children;
  setText(text, duration(left));
  bar.style.backgroundSize = `${(Math.min(left / Math.max(one.due_ms - one.since_ms, 1), 1) * 100).toFixed(1)}% 100%`;
}

export function makeEnded(context) {
  const list = h("ol", { class: "feed" });
  const nothing = empty("No operation has ended so far.");
  const { element, aside } = panel("Just ended", null, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Operations that just ended" }, list, nothing));
  const rates = h("span", { class: "hint" });
  aside.append(rates);
  return {
    element,
    draw() {
      const ended = context.ended.slice(0, MOST_ENDED);
      nothing.hidden = ended.length > 0;
      keyed(list, ended, (one) => one.key + one.atMs, (one) => {
        const mark = h("i", { class: `mark ${one.expired ? "hollow" : ""}` });
        mark.style.setProperty("--mark", colour(one.purgatory));
        return h("li", {}, mark, h("span", {}, h("b", {}, `${one.purgatory} ${one.expired ? "expired" : "completed"}`),
          ` ${one.keys.slice(0, 2).join(", ")} after ${time(one)}`,
          h("small", {}, `${one.client_id ?? one.operation} · broker ${one.broker} · ${one.by}`)));
      });
      const rate = context.rates;
      setText(rates, rate ? `${rate.completed} completed/s, ${rate.expired} expired/s` : "");
    },
  };
}

// Returns how long an operation waited; a range if the pictures give only bounds.
function time(one) {
  const [least, most] = [one.notBeforeMs ?? one.atMs, one.atMs].map((ms) => duration(Math.max(ms - one.since_ms, 0)));
  return least === most ? most : `${least} to ${most}`;
}
