// Two runs side by side: the events of each from where they first differ, and a switch for the run that panels show.

import { empty, h, keyed, panel, setAttribute, setText } from "page/dom.js";

const MOST_ROWS = 60;
const BEFORE = 3;

// `show(run)` makes all panels show one of the two.
export function makeBeside(context, runs, difference, show) {
  const columns = runs.map((run) => {
    const choice = h("button", { onclick: () => show(run) }, run.title);
    const list = h("ol", { class: "feed" });
    const end = h("small", {}, run.failure ? `failed: ${run.failure}` : "nothing failed");
    return { run, choice, list, element: h("div", { class: "side" }, choice, end, list) };
  });
  const nothing = empty("Both runs take the same course.");
  nothing.hidden = difference !== null;
  const { element, aside, count } = panel("Two runs", null, nothing,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Two runs side by side" }, h("div", { class: "sides" }, ...columns.map((one) => one.element))));
  if (difference) {
    aside.append(h("button", { onclick: () => context.goTo(difference.at_ms), title: "Go to the first difference (d)" }, "First difference"));
    setText(count, `they differ from ${context.clockText(difference.at_ms)} s on`);
    element.insertBefore(h("dl", { class: "difference" }, ...[difference.here, difference.there].flatMap((text, index) => [
      h("dt", {}, index ? "second run" : "first run"), h("dd", {}, text ?? "nothing more happens")])), element.lastChild);
  }
  return {
    element,
    draw() {
      const from = difference?.at_ms ?? 0;
      for (const { run, choice, list } of columns) {
        setAttribute(choice, "aria-pressed", context.recorded === run);
        const first = run.events.findIndex((one) => one.atMs >= from);
        const events = run.events.slice(Math.max((first < 0 ? run.events.length : first) - BEFORE, 0)).slice(0, MOST_ROWS);
        keyed(list, events, (one) => one.id, (one) => h("li", { class: `event is-${one.kind}` }, h("i", { class: "mark" }),
          h("time", {}, context.clockText(one.atMs)), h("span", {}, one.text)),
        (item, one) => setAttribute(item, "class", `event is-${one.kind}${one.atMs > context.nowMs ? " later" : ""}`));
      }
    },
  };
}
