// The tab Cluster: brokers in virtual time, drawn by the page of a cluster, with this tab in place of a control port.

import { h, keyed, panel, setText } from "./page/dom.js";
import { App } from "./page/app.js";
import { eventsBetween } from "./page/events.js";
import { titleOf, Verbs } from "./page/verbs.js";
import { duration, rate } from "./page/words.js";
import { endings, World } from "./page/world.js";

const MOST_LINES = 200;
const MOST_ENDED = 100;
const MOST_EVENTS = 500;
const SPEEDS = [0, 0.01, 0.1, 0.5, 1, 2, 5, 10, 100, 1000];
const LONGEST_FRAME_MS = 250;
const SHORTEST_PERIOD_MS = 50;
// Between two pictures passes as many times what it takes to draw one: frames stay fluid with thousands of operations.
const DRAWINGS_APART = 6;

export function makeClusterTab(machine) {
  return new ClusterTab(machine).element;
}

// Calls verbs in the worker; the forms are those of the page at a control port.
class VerbsOfTab extends Verbs {
  constructor(verbs, call) {
    super({ verbs }, () => ({}));
    this.callInWorker = call;
  }

  async call(name, values) {
    const error = await this.callInWorker(name, values);
    this.notice(error ? "bad" : "good", titleOf(name, values), error ?? this.text(name));
    return !error;
  }
}

class ClusterTab {
  constructor(machine) {
    this.machine = machine;
    this.world = null;
    this.speed = 1;
    this.isAsking = false;
    this.drawingMs = 0;
    this.last = 0;
    this.lines = [];
    this.eventId = 0;
    this.element = h("section", { class: "cluster-tab" }, this.controls());
    machine.addEventListener("starting", () => (this.world = null));
    this.open();
  }

  controls() {
    this.clock = h("output", { class: "clock" }, "–");
    this.slider = h("input", { type: "range", min: 0, max: SPEEDS.length - 1, value: SPEEDS.indexOf(1), "aria-label": "Speed", oninput: () => this.setSpeed(SPEEDS[this.slider.value]) });
    this.speedText = h("span", { class: "speed" }, "1×");
    this.pause = h("button", { onclick: () => this.setSpeed(this.speed ? 0 : 1) }, "Stop time");
    const brokers = h("input", { type: "number", min: 1, max: 9, value: 3, class: "short", "aria-label": "Brokers" });
    const topic = h("input", { value: "orders", class: "short", "aria-label": "Topic" });
    const value = h("input", { value: "three apples", "aria-label": "Value of the record" });
    const acks = h("select", { "aria-label": "acks" }, ...["all", "1", "0", "transaction"].map((each) => h("option", { value: each }, each === "transaction" ? "in a transaction" : `acks=${each}`)));
    const group = h("input", { value: "billing", class: "short", "aria-label": "Group" });
    const shareGroup = h("input", { value: "packing", class: "short", "aria-label": "Share group" });
    const answer = h("select", { "aria-label": "What it does with records" },
      ...["accept", "release", "reject"].map((each) => h("option", { value: each }, `${each}s them`)), h("option", { value: "" }, "lets their locks run out"));
    const isolation = h("select", { "aria-label": "Isolation level" }, ...["read_uncommitted", "read_committed"].map((each) => h("option", {}, each)));
    this.clients = h("ul", { class: "chips" });
    this.said = h("ol", { class: "moments log said-list", tabindex: 0, "aria-label": "What clients tell" });
    const time = panel("Virtual time", null, h("div", { class: "body" },
      h("div", { class: "row" }, this.pause,
        h("button", { onclick: () => this.single("step") }, "To the next change"),
        h("button", { onclick: () => this.single("advance", { ms: 1_000 }) }, "1 s"), h("button", { onclick: () => this.single("advance", { ms: 30_000 }) }, "30 s")),
      h("label", { class: "row" }, this.slider, this.speedText),
      h("div", { class: "row" }, h("button", { onclick: () => this.open(Number(brokers.value)) }, "New cluster"), "of", brokers, "brokers",
        h("button", { onclick: () => this.verbs?.openAll() }, "All verbs"))));
    time.aside.append(this.clock);
    const forms = panel("Clients", "aiokafka, unmodified; share groups by their protocol", h("div", { class: "body" },
      h("form", { class: "row", onsubmit: (event) => {
        event.preventDefault();
        const transaction = acks.value === "transaction";
        this.do("produce", { topic: topic.value, values: [value.value], acks: transaction ? "all" : acks.value, transaction });
      } }, h("button", {}, "Produce"), value, "to", topic, acks),
      h("form", { class: "row", onsubmit: (event) => {
        event.preventDefault();
        this.do("consume", { topic: topic.value, group: group.value, isolation: isolation.value });
      } }, h("button", {}, "Consume"), "in group", group, isolation),
      h("form", { class: "row", onsubmit: (event) => {
        event.preventDefault();
        this.do("share", { topic: topic.value, group: shareGroup.value, answer: answer.value });
      } }, h("button", {}, "Share"), "in share group", shareGroup, answer),
      this.clients), this.said);
    return h("div", { class: "grid" }, h("div", { class: "column" }, time.element), h("div", { class: "column" }, forms.element));
  }

  async open(brokers = 3) {
    const answer = await this.machine.ask("cluster", { verb: "new", value: { brokers } });
    this.verbs?.notices.remove();
    this.verbs = new VerbsOfTab(answer.verbs, (name, values) => this.call(name, values));
    this.app?.figures.remove();
    this.app?.grid.remove();
    this.app = new App({
      canWrite: true, verbText: (name) => this.verbs.text(name), call: (name, values) => this.verbs.call(name, values),
      open: (name, values) => this.verbs.open(name, values),
      onQuery: () => {
        const { search, bucket } = this.app.context.view;
        this.do("look", { search, level: bucket?.level ?? 0, bucket: bucket?.index ?? 0 });
      },
    });
    this.app.clockText = (atMs) => `${(atMs / 1000).toFixed(3)} s`;
    this.app.head.remove();
    this.element.append(this.app.figures, this.app.grid);
    this.world = null;
    this.lines = [];
    this.take(answer);
    this.last = performance.now();
    if (!this.runs) this.frame(this.last);
    this.runs = true;
  }

  setSpeed(speed) {
    this.speed = speed;
    this.slider.value = SPEEDS.indexOf(speed);
    setText(this.pause, speed ? "Stop time" : "Let time pass");
    setText(this.speedText, speed ? `${speed}×` : "stopped");
  }

  single(verb, value = {}) {
    this.setSpeed(0);
    return this.do(verb, value);
  }

  async call(name, values) {
    return (await this.do("call", { name, values }))?.error;
  }

  async do(verb, value) {
    try {
      const answer = await this.machine.ask("cluster", { verb, value });
      this.take(answer);
      if (answer.error && verb !== "call") this.verbs.notice("bad", verb, answer.error);
      return answer;
    } catch (error) {
      this.verbs.notice("bad", verb, error.message);
      return { error: error.message };
    }
  }

  take(answer) {
    const began = performance.now();
    const before = this.world;
    const world = (before ?? new World()).after(answer);
    this.world = world;
    const { context } = this.app;
    if (before) {
      context.ended = [...endings(before, world).reverse(), ...context.ended].slice(0, MOST_ENDED);
      const events = eventsBetween(before, world).map((event) => ({ ...event, id: (this.eventId += 1) }));
      context.events = [...events.reverse(), ...context.events].slice(0, MOST_EVENTS);
      context.rates = ratesOf(before, world) ?? context.rates;
    }
    this.app.show(world);
    this.app.tick(world.atMs, 0, performance.now());
    this.drawingMs = performance.now() - began;
    setText(this.clock, `${(world.atMs / 1000).toFixed(3)} s`);
    for (const line of answer.said) this.lines.unshift({ ...line, key: (this.eventId += 1) });
    this.lines.length = Math.min(this.lines.length, MOST_LINES);
    keyed(this.said, this.lines, (line) => line.key, (line) => h("li", {}, h("time", {}, duration(line.at_ms)), h("span", {}, h("b", {}, `${line.who} `), line.text)));
    keyed(this.clients, answer.clients, (name) => name, (name) => h("li", {}, name, h("button", { onclick: () => this.do("stop", { name }), "aria-label": `Stop ${name}` }, "Stop")));
  }

  // Lets virtual time pass as real time does, times the speed; a slow machine falls behind, and nothing is left out.
  frame = async (clock) => {
    const passed = Math.min(clock - this.last, LONGEST_FRAME_MS);
    this.last = clock;
    if (this.speed && this.world && !this.isAsking && this.element.isConnected && !this.element.hidden && !document.hidden) {
      this.due = (this.due ?? 0) + passed * this.speed;
      if (this.due >= 1 && clock - (this.asked ?? 0) >= Math.max(SHORTEST_PERIOD_MS, DRAWINGS_APART * this.drawingMs)) {
        const ms = Math.floor(this.due);
        this.due -= ms;
        this.asked = clock;
        this.isAsking = true;
        const answer = await this.do("advance", { ms });
        this.isAsking = false;
        if (answer.error) this.setSpeed(0);
      }
    }
    requestAnimationFrame(this.frame);
  };
}

function ratesOf(before, after) {
  const seconds = (after.atMs - before.atMs) / 1000;
  if (seconds < 0.2) return null;
  const change = (field) => Math.max(after.total("purgatory", field) - before.total("purgatory", field), 0) / seconds;
  return { completed: rate(change("completed")), expired: rate(change("expired")) };
}
