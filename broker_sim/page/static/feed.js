// The event log: changes in the cluster, newest first.

import { empty, h, keyed, panel, setText } from "page/dom.js";

const MOST_ROWS = 120;

export function makeFeed(context) {
  const list = h("ol", { class: "feed" });
  const nothing = empty("No events so far.");
  const search = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter events", oninput: () => context.redraw() });
  const { element, aside, count } = panel("Events", null, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Events" }, list, nothing));
  aside.append(search);
  return {
    element,
    draw() {
      const word = search.value.toLowerCase();
      const events = context.events.filter((one) => one.text.toLowerCase().includes(word)).slice(0, MOST_ROWS);
      nothing.hidden = events.length > 0;
      setText(count, context.events.length || "");
      keyed(list, events, (one) => one.id, (one) => h("li", { class: `event is-${one.kind}` }, h("i", { class: "mark" }), h("time", {}, context.clockText(one.atMs)), h("span", {}, one.text)));
    },
  };
}
