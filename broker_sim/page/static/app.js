// The frame of the page, live and recorded: header, key figures and panels, and when they are drawn.

import { makeBrokers } from "page/brokers.js";
import { makeGroups, makeTransactions } from "page/coordinators.js";
import { h, keyed, setAttribute, setText } from "page/dom.js";
import { makeFeed } from "page/feed.js";
import { makeEnded, makeOperations } from "page/operations.js";
import { makePartitions } from "page/partitions.js";
import { makeRequests } from "page/requests.js";
import { themeButton } from "page/theme.js";
import { makeWheel } from "page/wheel.js";
import { World } from "page/world.js";
import { bytes, number, rate } from "page/words.js";

const WORDS_EVERY_MS = 100;
// The panels from top to bottom, by the number of columns.
const COLUMNS = {
  1: [["brokers", "wheel", "operations", "ended", "feed", "partitions", "requests", "groups", "transactions"]],
  2: [["brokers", "operations", "ended", "partitions", "transactions"], ["wheel", "feed", "requests", "groups"]],
  3: [["brokers", "partitions", "feed"], ["wheel", "operations", "ended"], ["requests", "groups", "transactions"]],
};

// Actions of buttons where nothing can be changed, as in a recorded run.
const NO_ACTIONS = { canWrite: false, verbText: () => "", call: () => {}, open: () => {}, onQuery: () => {} };

export class App {
  // `actions` override those of `NO_ACTIONS`.
  constructor(actions = {}) {
    this.context = {
      view: { purgatory: "", operation: null, bucket: null, filter: "", search: "" },
      world: new World(), ended: [], events: [], rates: null, requestRate: 0, rateWindowMs: 950, levels: [],
      redraw: () => this.draw(),
      retick: () => this.retick(),
      selectOperation: (key) => this.select(key),
      selectBucket: (bucket) => this.selectBucket(bucket),
      clockText: (atMs) => this.clockText(atMs),
      nowMs: 0, requestsBefore: null,
      ...NO_ACTIONS, ...actions,
    };
    this.drawnWords = 0;
    this.moment = [0, 0];
    const context = this.context;
    this.panels = {
      brokers: makeBrokers(context), wheel: makeWheel(context), operations: makeOperations(context), ended: makeEnded(context),
      partitions: makePartitions(context), requests: makeRequests(context), groups: makeGroups(context),
      transactions: makeTransactions(context), feed: makeFeed(context),
    };
    this.figures = h("dl", { class: "figures" });
    this.state = h("span", { class: "pill", role: "status" });
    this.title = h("span", { class: "cluster" });
    this.tools = h("div", { class: "tools" });
    this.grid = h("main", { class: "grid" });
    this.arrange();
    addEventListener("resize", () => {
      this.arrange();
      this.retick();
    });
    this.head = h("header", { class: "top" }, h("h1", {}, logo(), "broker-sim"), this.title, this.state, this.tools);
    this.tools.append(themeButton());
    document.getElementById("page").append(this.head, this.figures, this.grid);
  }

  // Removes the panels for which a recorded run has no data.
  keep(isKept) {
    for (const [name, panel] of Object.entries(this.panels)) panel.element.hidden = !isKept(name);
    this.arrange();
  }

  // Adds a panel as wide as the window above the others, for a recorded run.
  addWide(name, panel) {
    this.panels = { [name]: panel, ...this.panels };
    this.grid.before(panel.element);
  }

  // Puts the panels into as many columns as the window has room for.
  arrange() {
    const most = COLUMNS[3][2].every((name) => this.panels[name].element.hidden) ? 2 : 3;
    const count = Math.min(innerWidth < 1040 ? 1 : innerWidth < 1640 ? 2 : 3, most);
    if (this.grid.childElementCount === count) return;
    this.grid.replaceChildren(...COLUMNS[count].map((names) => h("div", { class: "column" }, ...names.map((name) => this.panels[name].element))));
  }

  show(world) {
    this.context.world = world;
    this.draw();
  }

  draw() {
    const { world } = this.context;
    for (const panel of Object.values(this.panels)) panel.draw(world);
    this.drawFigures(world);
    this.drawnWords = 0;
  }

  // Animates between two pictures: the wheel's hands on every frame, ages and times left a few times a second.
  tick(nowMs, speed, frameMs) {
    this.moment = [nowMs, speed];
    const { wheel, ...others } = this.panels;
    wheel.tick(nowMs, speed);
    if (frameMs - this.drawnWords < WORDS_EVERY_MS) return;
    this.drawnWords = frameMs;
    for (const panel of Object.values(others)) panel.tick?.(nowMs);
  }

  // Draws ages and times left again where other rows have come into view, also when time stands still.
  retick() {
    this.drawnWords = 0;
    this.tick(...this.moment, performance.now());
  }

  drawFigures(world) {
    const { rates, requestRate } = this.context;
    const brokers = world.all("broker");
    const unwell = world.cluster?.partitions_unwell ?? 0;
    const running = brokers.filter((one) => one.state === "running" && !one.fenced).length;
    const memory = world.cluster?.memory;
    // A trace has no data about the cluster.
    const ofCluster = world.cluster ? [
      ["Brokers", `${running}/${brokers.length}`, running < brokers.length],
      ["Partitions", number(world.cluster.partitions), false],
      ["Not in sync", number(unwell), unwell > 0],
      ["Group lag", number(world.total("group", "lag")), false],
      ["Memory", memory ? bytes(memory.used_bytes) : "–", false],
    ] : [];
    const figures = [
      ...ofCluster.slice(0, 3),
      ["Parked", number(world.total("purgatory", "num_delayed")), false],
      ["Completed/s", rates?.completed ?? "–", false],
      ["Expired/s", rates?.expired ?? "–", false],
      ["Requests/s", rate(requestRate), false],
      ...ofCluster.slice(3),
    ];
    keyed(this.figures, figures, ([name]) => name, ([name]) => h("div", {}, h("dt", {}, name), h("dd")), (item, [, value, isBad]) => {
      setText(item.lastChild, value);
      setAttribute(item, "data-bad", isBad);
    });
  }

  select(key) {
    const { view, world } = this.context;
    view.operation = view.operation === key ? null : key;
    const one = world.parked.find((each) => each.key === view.operation);
    if (one && view.purgatory && view.purgatory !== `${one.broker}/${one.purgatory}`) view.purgatory = "";
    this.setBucket(null);
  }

  // Selects a bucket by its level and index, null for none.
  selectBucket(bucket) {
    this.context.view.operation = null;
    this.setBucket(bucket);
  }

  setBucket(bucket) {
    const { view } = this.context;
    const isOther = view.bucket?.level !== bucket?.level || view.bucket?.index !== bucket?.index;
    view.bucket = bucket;
    if (isOther) this.context.onQuery();
    this.draw();
  }
}

function logo() {
  const link = document.querySelector('link[rel="icon"]');
  return h("img", { src: link.href, alt: "", width: 26, height: 26 });
}
