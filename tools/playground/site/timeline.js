// The course of a failing run: faults as bars, what workers and brokers did as dots, and every moment in words.

import { h, svg } from "./page/dom.js";

const FAULT = "FAULT";
const WIDTH = 640;
const NAMES = 96;
const ROW = 22;

export function drawCourse(failure) {
  const moments = [...failure.timeline].sort((one, other) => one.at_s - other.at_s);
  const endS = Math.max(failure.virtual_s, ...moments.map((moment) => moment.at_s), 1);
  const lanes = [...new Set(moments.map((moment) => moment.who))].filter((who) => who !== FAULT && who !== "ORDER");
  const x = (s) => NAMES + (s / endS) * (WIDTH - NAMES - 10);
  const height = (lanes.length + 1) * ROW + 22;
  const rows = h("ol", { class: "moments", tabindex: 0, "aria-label": "Moments of the run" }, ...moments.map((moment) =>
    h("li", { class: moment.who === FAULT ? "fault" : null }, h("time", {}, moment.at_s.toFixed(3)), h("b", {}, moment.who), h("span", {}, moment.what))));
  const show = (index) => {
    for (const row of rows.children) row.classList.remove("shown");
    const row = rows.children[index];
    row.classList.add("shown");
    rows.scrollTop = row.offsetTop - rows.offsetTop - rows.clientHeight / 2;
  };
  const bars = failure.course.map((fault) => svg("rect", {
    class: "bar-fault", x: x(fault.at_s), y: 3, width: Math.max(x(fault.at_s + fault.for_s) - x(fault.at_s), 5), height: lanes.length * ROW + ROW - 6, rx: 3,
  }, svg("title", {}, `${fault.at_s} s: ${fault.text}`)));
  const dots = moments.map((moment, index) => svg("circle", {
    class: moment.who === FAULT ? "dot-fault" : "dot-moment", cx: x(moment.at_s), cy: (lanes.indexOf(moment.who) + 1) * ROW + ROW / 2, r: 4,
    onclick: () => show(index),
  }, svg("title", {}, `${moment.at_s.toFixed(3)} s ${moment.who}: ${moment.what}`)));
  const names = ["faults", ...lanes].map((name, index) => svg("text", { x: 0, y: index * ROW + ROW / 2 + 4, class: "lane" }, name.slice(0, 14)));
  const lines = lanes.map((_, index) => svg("line", { x1: NAMES, x2: WIDTH, y1: (index + 1) * ROW + ROW / 2, y2: (index + 1) * ROW + ROW / 2, class: "lane-line" }));
  const step = [0.5, 1, 2, 5, 10, 20, 60, 120, 300].find((each) => endS / each <= 10) ?? 600;
  const ticks = Array.from({ length: Math.floor(endS / step) + 1 }, (_, index) => svg("text", { x: x(index * step), y: height - 4, class: "tick" }, `${index * step} s`));
  const first = moments.findIndex((moment) => moment.who === FAULT);
  if (first >= 0) requestAnimationFrame(() => show(first));
  const end = svg("line", { class: "end-line", x1: x(failure.virtual_s), x2: x(failure.virtual_s), y1: 0, y2: height - 18 }, svg("title", {}, `${failure.virtual_s.toFixed(3)} s: ${failure.error}`));
  return h("figure", { class: "course" },
    svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": "Time line of the failing run" }, ...bars, ...lines, ...names, ...ticks, ...dots, end), rows);
}
