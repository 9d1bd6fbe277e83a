// Requests a second by API and by client, with their errors.

import { empty, h, heads, keyed, panel, setAttribute, setBreakable, setText } from "page/dom.js";
import { duration, number, rate } from "page/words.js";

const HISTORY = 60;
const MOST_ROWS = 14;

export function makeRequests(context) {
  const apis = h("tbody");
  const clients = h("tbody");
  const nothing = empty("No request has been answered so far.");
  const table = (title, body) => h("table", { class: "rates", "aria-label": `Requests by ${title}` }, h("thead", {}, h("tr", {}, heads(title, "Per second*", "Course", "Mean time*", "Errors"))), body);
  const [byApi, byClient] = [table("API", apis), table("Client", clients)];
  const { element, count } = panel("Requests", null, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Requests" }, byApi, byClient, nothing));
  const memory = new Map();
  let last = null;
  return {
    element,
    draw(world) {
      if (last && world.atMs < last.atMs) {
        last = null;
        memory.clear();
      }
      if (last && world.atMs - last.atMs < context.rateWindowMs) return;
      // A recorded run has the counts of a second ago; live these are the counts of the last drawing.
      const known = context.requestsBefore;
      const window = known?.seconds ?? (last ? (world.atMs - last.atMs) / 1000 : 0);
      const before = new Map((known?.rows ?? last?.requests ?? []).map((row) => [`${row.api}/${row.client_id}`, row]));
      const changes = world.requests.map((row) => {
        const old = before.get(`${row.api}/${row.client_id}`) ?? { count: 0, elapsed_ms: 0 };
        return { ...row, new_count: row.count - old.count, new_ms: row.elapsed_ms - old.elapsed_ms };
      });
      last = world;
      nothing.hidden = changes.length > 0;
      byApi.hidden = byClient.hidden = !changes.length;
      for (const each of [byApi, byClient]) setAttribute(each, "data-course", known === null);
      drawRows(apis, summed(changes, (row) => row.api), window, memory, "api");
      drawRows(clients, summed(changes, (row) => row.client_id ?? "without id"), window, memory, "client");
      const total = changes.reduce((sum, row) => sum + row.new_count, 0);
      context.requestRate = window ? total / window : 0;
      setText(count, window ? `${rate(total / window)}/s` : "");
    },
  };
}

function summed(rows, nameOf) {
  const sums = new Map();
  for (const row of rows) {
    const name = nameOf(row);
    const sum = sums.get(name) ?? { name, count: 0, new_count: 0, new_ms: 0, errors: {} };
    sums.set(name, sum);
    for (const field of ["count", "new_count", "new_ms"]) sum[field] += row[field];
    for (const [error, hits] of Object.entries(row.errors)) sum.errors[error] = (sum.errors[error] ?? 0) + hits;
  }
  return [...sums.values()].sort((one, other) => other.count - one.count).slice(0, MOST_ROWS);
}

function drawRows(body, sums, window, memory, kind) {
  keyed(body, sums, (row) => row.name, (row) => h("tr", {}, h("td", {}, h("b", {}, row.name)), h("td", { class: "number" }), h("td", { class: "spark" }, sparkline()), h("td", { class: "number" }), h("td", { class: "errors" })), (row, sum) => {
    const [, perSecond, spark, mean, errors] = row.children;
    const history = memory.get(`${kind}/${sum.name}`) ?? [];
    memory.set(`${kind}/${sum.name}`, history);
    history.push(window ? sum.new_count / window : 0);
    if (history.length > HISTORY) history.shift();
    setText(perSecond, window ? rate(sum.new_count / window) : "–");
    drawSpark(spark.firstChild, history);
    setText(mean, sum.new_count > 0 ? duration(sum.new_ms / sum.new_count) : "–");
    const text = Object.entries(sum.errors).map(([error, hits]) => `${error} ×${number(hits)}`).join(", ");
    setBreakable(errors, text || "–");
    setAttribute(errors, "data-bad", text !== "");
  });
}

function sparkline() {
  const canvas = h("canvas", { width: 120, height: 26, "aria-hidden": "true" });
  return canvas;
}

export function drawSpark(canvas, values, most = Math.max(...values, 1e-9)) {
  const brush = canvas.getContext("2d");
  const { width, height } = canvas;
  brush.clearRect(0, 0, width, height);
  brush.strokeStyle = getComputedStyle(canvas).color;
  brush.lineWidth = 2;
  brush.beginPath();
  values.forEach((value, index) => {
    const x = width - (values.length - 1 - index) * (width / (HISTORY - 1));
    const y = height - 2 - (value / most) * (height - 4);
    if (index) brush.lineTo(x, y);
    else brush.moveTo(x, y);
  });
  brush.stroke();
}
