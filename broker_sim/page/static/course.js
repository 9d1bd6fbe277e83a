// The course of a recorded run around a moment: a lane for each client, worker and broker, requests as arrows between
// clients and brokers, faults as bands on the lanes of their targets.

import { h, panel, setText, svg } from "page/dom.js";
import { duration, plural } from "page/words.js";

const WIDTHS_MS = [200, 1_000, 5_000, 20_000];
const LANE = 24;
const LEFT = 140;
const LONGEST_NAME = 19;
const MOST_ARROWS = 400;

export function makeCourse(context) {
  let widthMs = WIDTHS_MS[1];
  let width = 900;
  const choice = h("select", { "aria-label": "Time that is shown", onchange: () => {
    widthMs = Number(choice.value);
    context.redraw();
  } }, ...WIDTHS_MS.map((value) => h("option", { value, selected: value === widthMs }, duration(value))));
  const picture = svg("svg", { class: "course", role: "img", "aria-label": "Requests between clients and brokers around this moment" });
  const { element, aside, count } = panel("Course", null, h("div", { class: "scroll" }, picture));
  aside.append(choice);
  picture.addEventListener("click", (event) => {
    const box = picture.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * width;
    if (x > LEFT) context.goTo(context.nowMs - widthMs / 2 + (x - LEFT) / (width - LEFT) * widthMs);
  });
  const widthNow = () => Math.max(picture.clientWidth, 500);
  new ResizeObserver(() => widthNow() === width || context.redraw()).observe(picture);
  return {
    element,
    draw(world) {
      const { recorded } = context;
      width = widthNow();
      const states = new Map(world.all("broker").map((one) => [one.id, one.state]));
      const brokers = recorded.brokers.map((id) => ({ name: `broker-${id}`, kind: "broker", state: states.get(id) }));
      const lanes = [...recorded.workers, ...recorded.clients.filter((name) => !recorded.workers.includes(name))].map((name) => ({ name, kind: "client" })).concat(brokers);
      const from = context.nowMs - widthMs / 2;
      const x = (ms) => LEFT + (ms - from) / widthMs * (width - LEFT);
      const y = new Map(lanes.map((lane, index) => [lane.name, index * LANE + LANE / 2 + 4]));
      const height = lanes.length * LANE + 8;
      picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const inside = (one) => one.at_ms + (one.elapsed_ms ?? 0) >= from && one.at_ms <= from + widthMs;
      const requests = recorded.requests.filter(inside);
      setText(count, requests.length > MOST_ARROWS ? `${MOST_ARROWS} of ${requests.length} requests` : plural(requests.length, "request"));
      picture.replaceChildren(
        ...lanes.map((lane) => drawLane(lane, y.get(lane.name), width)),
        ...recorded.bands.filter((band) => band.to_ms >= from && band.from_ms <= from + widthMs).flatMap((band) => drawBand(band, x, y, width)),
        ...requests.slice(0, MOST_ARROWS).map((one) => drawRequest(one, x, y, width)),
        ...recorded.events.filter((one) => one.atMs >= from && one.atMs <= from + widthMs && y.has(one.about.replace("/", "-"))).slice(0, MOST_ARROWS).map((one) => drawEvent(one, x, y)),
        svg("path", { class: "now", d: `M${x(context.nowMs)} 0V${height}` }));
    },
  };
}

function drawLane(lane, y, width) {
  // Names of clients differ at their ends.
  const name = lane.name.length > LONGEST_NAME ? `${lane.name.slice(0, 9)}…${lane.name.slice(10 - LONGEST_NAME)}` : lane.name;
  return svg("g", { class: `lane ${lane.kind} ${lane.state ?? ""}` }, svg("text", { x: 10, y: y + 4 }, name), svg("path", { d: `M${LEFT} ${y}H${width}` }));
}

function drawBand(band, x, y, width) {
  return band.on.filter((name) => y.has(name)).map((name) => {
    const [left, right] = [Math.max(x(band.from_ms), LEFT), Math.min(x(band.to_ms), width)];
    return svg("rect", { class: "band", x: left, y: y.get(name) - LANE / 2 + 2, width: Math.max(right - left, 3), height: LANE - 4, rx: 3 }, svg("title", {}, band.text));
  });
}

function drawRequest(one, x, y, width) {
  const [top, bottom] = [y.get(one.client), y.get(`broker-${one.broker}`)];
  const end = one.at_ms + (one.elapsed_ms ?? 0);
  const clamp = (value) => Math.min(Math.max(value, LEFT), width);
  const title = `${one.api} of ${one.client} to broker ${one.broker}, ${one.elapsed_ms === null ? "no answer" : duration(one.elapsed_ms)}${one.errors.length ? `: ${one.errors.join(", ")}` : ""}`;
  const kind = one.errors.length ? "bad" : one.elapsed_ms === null ? "lost" : "";
  const [left, right] = [clamp(x(one.at_ms)), clamp(x(end))];
  return svg("g", { class: `request ${kind}` }, svg("title", {}, title), svg("path", { d: `M${left} ${top}V${bottom}H${right}${one.elapsed_ms === null ? "" : `V${top}`}` }), svg("circle", { cx: left, cy: bottom, r: 2.4 }));
}

function drawEvent(one, x, y) {
  return svg("path", { class: `tick is-${one.kind}`, d: `M${x(one.atMs)} ${y.get(one.about.replace("/", "-")) - 7}l5 7l-5 7l-5 -7z` }, svg("title", {}, one.text));
}
