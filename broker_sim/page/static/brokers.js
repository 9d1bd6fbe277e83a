// Brokers with their state and actions, and the links between them that are cut or slow.

import { h, keyed, panel, setAttribute, setText, svg } from "page/dom.js";
import { node } from "page/events.js";
import { apiName, number, plural } from "page/words.js";

const MOST_IN_RING = 12;
const LABEL_SIDE = 14;

export function makeBrokers(context) {
  const ring = svg("svg", { class: "ring", viewBox: "-120 -92 240 184", role: "img", "aria-label": "Brokers and the links between them" },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8Z", class: "arrow" }))),
    svg("g"), svg("g"));
  const cards = h("div", { class: "cards" });
  const links = h("ul", { class: "chips" });
  const { element, count } = panel("Brokers", null, h("div", { class: "brokers-body" }, ring, h("div", { class: "brokers-side" }, cards, links)));
  return {
    element,
    draw(world) {
      const brokers = world.all("broker");
      const running = brokers.filter((one) => one.state === "running").length;
      setText(count, `${running} of ${brokers.length} running`);
      keyed(cards, brokers, (one) => one.id, (one) => makeCard(one, context), (card, one) => drawCard(card, one, world, context));
      ring.style.display = brokers.length > MOST_IN_RING || brokers.length < 2 ? "none" : "";
      if (ring.style.display !== "none") drawRing(ring, brokers, world);
      drawChips(links, world, context);
    },
  };
}

function makeCard(one, context) {
  const button = (label, verb) => h("button", { onclick: () => context.call(verb, { broker_id: one.id }), title: context.verbText(verb) }, label);
  const buttons = {
    pause: button("Pause", "pause"), resume: button("Resume", "resume"),
    kill: button("Kill", "kill"), stop: button("Stop", "stop"), start: button("Start", "start"),
    disconnect_clients: button("Cut clients", "disconnect_clients"), reconnect_clients: button("Let clients in", "reconnect_clients"),
    disconnect: button("Isolate", "disconnect"), reconnect: button("Reconnect", "reconnect"),
  };
  const card = h("article", { class: "broker", "aria-label": `Broker ${one.id}` },
    h("header", {}, h("b", {}, `Broker ${one.id}`), h("span", { class: "state" }), h("code", {}, one.address)),
    h("dl", {}, h("dt", {}, "leads"), h("dd"), h("dt", {}, "replicas"), h("dd"), h("dt", {}, "parked"), h("dd")),
    h("div", { class: "buttons" }, ...Object.values(buttons)));
  card.buttons = buttons;
  return card;
}

function drawCard(card, one, world, context) {
  const state = card.querySelector(".state");
  const isOdd = one.fenced || one.clients_cut_off;
  setText(state, [one.state, one.fenced && one.state !== "dead" ? "fenced" : null, one.clients_cut_off ? "no clients" : null].filter(Boolean).join(", "));
  setAttribute(state, "class", `state ${one.state}${isOdd ? " odd" : ""}`);
  setAttribute(card, "data-state", one.state);
  const [leads, replicas, parked] = card.querySelectorAll("dd");
  setText(leads, number(one.leads));
  setText(replicas, number(one.replicas));
  setText(parked, number(world.all("purgatory").filter((each) => each.broker === one.id).reduce((sum, each) => sum + each.num_delayed, 0)));
  const cut = world.all("link").filter((link) => link.drop && link.from === one.id).length;
  const isIsolated = cut >= world.all("broker").length; // from all others, and from the controller
  const isAlive = one.state !== "dead";
  const shown = {
    pause: one.state === "running", resume: one.state === "paused", kill: isAlive, stop: one.state === "running", start: !isAlive,
    disconnect_clients: isAlive && !one.clients_cut_off, reconnect_clients: isAlive && one.clients_cut_off,
    disconnect: !isIsolated, reconnect: isIsolated,
  };
  for (const [name, button] of Object.entries(card.buttons)) button.hidden = !shown[name] || !context.canWrite;
}

function drawRing(ring, brokers, world) {
  const at = (index) => {
    const turn = index / brokers.length * 2 * Math.PI;
    return [82 * Math.sin(turn), -62 * Math.cos(turn) + (brokers.length === 3 ? 10 : 0)];
  };
  const places = new Map(brokers.map((one, index) => [one.id, at(index)]));
  const faults = new Map(world.all("link").map((link) => [`${link.from}/${link.to}`, link]));
  const lines = brokers.flatMap((one) => brokers.filter((other) => other.id !== one.id).map((other) => ({
    from: one.id, to: other.id, fault: faults.get(`${one.id}/${other.id}`) ?? null })));
  keyed(ring.children[1], lines, (line) => `${line.from}/${line.to}`, () => svg("g", {}, svg("path"), svg("title"), svg("text")), (group, line) => {
    const [path, title, label] = group.children;
    const [[x1, y1], [x2, y2]] = [places.get(line.from), places.get(line.to)];
    const length = Math.hypot(x2 - x1, y2 - y1);
    const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
    const [side, short] = [4, 25];
    const [ax, ay] = [x1 + dx * short - dy * side, y1 + dy * short + dx * side];
    const [bx, by] = [x2 - dx * short - dy * side, y2 - dy * short + dx * side];
    setAttribute(path, "d", `M${ax} ${ay}L${bx} ${by}`);
    setAttribute(path, "class", `link ${line.fault?.drop ? "cut" : line.fault ? "slow" : ""}`);
    setAttribute(path, "marker-end", line.fault ? "url(#arrow)" : null);
    const what = line.fault?.drop ? "is cut" : line.fault ? `takes ${line.fault.delay_ms} ms` : "is up";
    setText(title, `The link from ${node(line.from)} to ${node(line.to)} ${what}`);
    setText(label, line.fault?.drop ? "✕" : line.fault?.delay_ms ? `${line.fault.delay_ms} ms` : "");
    setAttribute(label, "x", (ax + bx) / 2 - dy * LABEL_SIDE);
    setAttribute(label, "y", (ay + by) / 2 + dx * LABEL_SIDE + 3);
  });
  keyed(ring.children[2], brokers, (one) => one.id, (one) => svg("g", { class: "node" }, svg("circle", { r: 19 }), svg("text", { y: 5 }, String(one.id)), svg("text", { y: 33, class: "small" })), (group, one) => {
    const [x, y] = places.get(one.id);
    setAttribute(group, "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    setAttribute(group, "data-state", one.state);
    setText(group.children[2], one.state === "running" ? "" : one.state);
  });
}

function drawChips(list, world, context) {
  const slow = world.all("link").map((link) => ({
    key: `link/${link.from}/${link.to}`, text: `${node(link.from)} → ${node(link.to)} ${link.drop ? "cut" : `${link.delay_ms} ms`}`,
    end: link.from < 0 || link.to < 0 ? null : ["set_link", { source: link.from, target: link.to }], label: "Mend" }));
  const faults = world.all("fault").map((fault) => ({
    key: `fault/${fault.id}`, text: `fault ${fault.id}: ${faultText(fault)}`, end: ["heal", { fault_id: fault.id }], label: "End" }));
  const late = world.cluster?.metadata_delay_ms
    ? [{ key: "late", text: `metadata up to ${world.cluster.metadata_delay_ms} ms late`, end: ["delay_metadata", { max_ms: 0 }], label: "End" }] : [];
  keyed(list, [...slow, ...faults, ...late], (chip) => chip.key, (chip) => h("li", {}, h("span"), chip.end && context.canWrite
    ? h("button", { title: context.verbText(chip.end[0]), onclick: () => context.call(...chip.end) }, chip.label) : null),
  (item, chip) => setText(item.firstChild, chip.text));
}

export function faultText(fault) {
  const where = [apiName(fault.api), fault.topic && `of ${fault.topic}`, fault.broker !== null && `at broker ${fault.broker}`].filter(Boolean).join(" ");
  const what = [
    fault.error, fault.lose && `loses the ${fault.lose}`, fault.delay_ms && `${fault.delay_ms} ms late`,
    fault.throttle_ms && `throttled ${fault.throttle_ms} ms`, fault.hold && `holds ${fault.held}`, fault.hook,
  ].filter(Boolean).join(", ");
  return `${where} ${what}, ${plural(fault.hits, "hit")}`;
}
