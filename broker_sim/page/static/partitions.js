// Partitions: leader, in-sync replicas, high watermark and each replica's progress, searched in the whole cluster.

import { empty, h, heads, keyed, panel, setAttribute, setText } from "page/dom.js";
import { number, plural } from "page/words.js";

export function makePartitions(context) {
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search partitions", oninput: () => {
    context.view.search = search.value.trim();
    context.onQuery();
    context.redraw();
  } });
  const rows = h("tbody");
  const nothing = empty("No partition's name contains this.");
  const more = h("p", { class: "more" });
  const { element, count, aside } = panel("Partitions", null, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Partitions" },
    h("table", { "aria-label": "Partitions with their replicas" }, h("thead", {}, h("tr", {}, heads("Partition", "Replicas", "High watermark*", "End*", context.canWrite ? "Actions" : null))), rows),
    nothing, more));
  aside.append(search);
  return {
    element,
    draw(world) {
      const facts = world.cluster ?? {};
      const shown = world.all("partition").filter((one) => `${one.topic}-${one.partition}`.includes(context.view.search));
      setText(count, `${number(facts.partitions)}${facts.partitions_unwell ? ` · ${facts.partitions_unwell} without all replicas` : ""}`);
      setAttribute(count, "data-bad", facts.partitions_unwell > 0);
      nothing.hidden = shown.length > 0;
      const matching = Math.max(facts.partitions_matching ?? 0, shown.length);
      setText(more, matching > shown.length ? `${shown.length} of ${plural(matching, "partition")}: search for others.` : "");
      keyed(rows, shown, (one) => `${one.topic}/${one.partition}`, (one) => makeRow(one, context), (row, one) => drawRow(row, one, context));
    },
  };
}

function makeRow(one, context) {
  const move = h("button", { title: context.verbText("transfer_leadership"), onclick: () => {
    const now = context.world.parts.get(`partition/${one.topic}/${one.partition}`);
    const others = now.isr.filter((id) => id !== now.leader);
    context.open("transfer_leadership", { topic: one.topic, partition: one.partition, to: others[0] ?? "" });
  } }, "Move leader");
  return h("tr", {}, h("td", {}, h("b", {}, one.topic), `-${one.partition}`), h("td", { class: "replicas" }), h("td", { class: "number" }), h("td", { class: "number" }), context.canWrite ? h("td", { class: "buttons" }, move) : null);
}

function drawRow(row, one, context) {
  const leader = one.replicas.find((replica) => replica.broker === one.leader);
  const [, replicas, high, end, actions] = row.children;
  keyed(replicas, one.assignment, (id) => id, () => h("span", { class: "replica" }, h("b"), h("small")), (pill, id) => {
    const replica = one.replicas.find((each) => each.broker === id);
    const [isLeader, inSync] = [id === one.leader, one.isr.includes(id)];
    const behind = leader && replica ? leader.log_end_offset - replica.log_end_offset : 0;
    setAttribute(pill, "class", `replica${isLeader ? " leader" : ""}${inSync ? "" : " out"}${replica ? "" : " dead"}`);
    setText(pill.firstChild, id);
    setText(pill.lastChild, behind > 0 ? `−${number(behind)}` : "");
    const state = isLeader ? "leads" : inSync ? "is in sync" : "is out of the ISR";
    setAttribute(pill, "title", `broker ${id} ${state}${replica ? `, its log ends at ${replica.log_end_offset}` : ", it is dead"}`);
    setAttribute(pill, "aria-label", pill.getAttribute("title"));
    setAttribute(pill, "role", "img");
  });
  setText(high, number(leader?.high_watermark));
  setText(end, number(leader?.log_end_offset));
  if (actions) actions.firstChild.hidden = one.isr.length < 2;
  setAttribute(row, "data-bad", one.leader < 0 || one.isr.length < one.assignment.length);
}
