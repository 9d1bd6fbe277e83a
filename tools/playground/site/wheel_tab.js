// The tab Timing wheel: Kafka's timer stepped by hand, drawn as on the page of a cluster.

import { h, keyed, panel, setText } from "./page/dom.js";
import { makeWheel } from "./page/wheel.js";
import { duration, number, plural } from "./page/words.js";
import { World } from "./page/world.js";

const FIRST_TASKS = [8, 17, 46, 120, 350, 446, 450, 473, 3_000, 7_500];

export function makeWheelTab(machine) {
  return new WheelTab(machine).element;
}

class WheelTab {
  constructor(machine) {
    this.machine = machine;
    this.world = new World();
    this.nowMs = 0;
    const view = { purgatory: "", operation: null, bucket: null };
    this.context = {
      view, levels: [], world: this.world, redraw: () => this.draw(),
      selectOperation: (key) => {
        Object.assign(view, { operation: view.operation === key ? null : key, bucket: null });
        this.draw();
      },
      selectBucket: (bucket) => {
        Object.assign(view, { operation: null, bucket });
        this.draw();
      },
    };
    this.picture = makeWheel(this.context);
    this.queue = h("ol", { class: "queue" });
    this.log = h("ol", { class: "moments log", tabindex: 0, "aria-label": "What happened" });
    this.counts = h("dl", { class: "counts" });
    this.element = h("section", { class: "grid wheel-tab" },
      h("div", { class: "column" }, this.controls(), this.picture.element),
      h("div", { class: "column" }, this.makeQueue(), this.makeCounts(), this.makeLog()));
    this.do("new").then(() => this.do("add", JSON.stringify(FIRST_TASKS)));
  }

  controls() {
    this.refusal = h("p", { class: "refusal", role: "alert" });
    this.clock = h("output", { class: "clock" }, "0 ms");
    const delay = h("input", { type: "number", min: 0, max: 10_000_000, value: 450, class: "short", "aria-label": "Delay in ms" });
    const ahead = h("input", { type: "number", min: 1, value: 40, class: "short", "aria-label": "Milliseconds to advance" });
    const size = h("input", { type: "number", min: 2, max: 60, value: 20, class: "short", "aria-label": "Buckets of a wheel" });
    const tick = h("input", { type: "number", min: 1, max: 1_000, value: 1, class: "short", "aria-label": "Milliseconds of a bucket" });
    const parts = panel("By hand", null, h("div", { class: "body" },
      h("div", { class: "row" }, h("button", { class: "primary", onclick: () => this.do("step") }, "Step to the next bucket"),
        h("button", { onclick: () => this.do("advance", Number(ahead.value)) }, "Advance"), ahead, "ms"),
      h("div", { class: "row" }, h("button", { onclick: () => this.do("add", JSON.stringify([Number(delay.value)])) }, "Add a task"), "due in", delay, "ms",
        h("button", { onclick: () => this.do("cancel", this.selected()), title: "The selected task, else the last one that is due" }, "Cancel"),
        h("button", { onclick: () => this.do("add", JSON.stringify(Array.from({ length: 100 }, () => Math.floor(Math.random() ** 3 * 10_000)))) }, "Add 100")),
      h("div", { class: "row" }, h("button", { onclick: () => this.do("new", JSON.stringify({ tick_ms: Number(tick.value), size: Number(size.value) })) }, "Start anew"), "with", size, "buckets of", tick, "ms"),
      this.refusal));
    parts.aside.append(this.clock);
    return parts.element;
  }

  makeQueue() {
    const parts = panel("Delay queue", "the only thing that Kafka's timer sorts: buckets, not tasks", this.queue);
    this.queueCount = parts.count;
    return parts.element;
  }

  makeCounts() {
    return panel("What it took", null, h("div", { class: "body" }, this.counts)).element;
  }

  makeLog() {
    return panel("What happened", null, this.log).element;
  }

  selected() {
    return this.context.view.operation?.split("/").at(-1) ?? "";
  }

  async do(verb, value) {
    let state;
    try {
      state = await this.machine.ask("wheel", { verb, value });
    } catch (error) {
      setText(this.refusal, error.message.replace(/^\w+: /, ""));
      return;
    }
    setText(this.refusal, "");
    this.world = new World().after(state);
    this.state = state;
    this.context.world = this.world;
    if (!this.world.parked.some((one) => one.key === this.context.view.operation)) this.context.view.operation = null;
    this.draw();
  }

  draw() {
    const { state } = this;
    if (!state) return;
    this.picture.draw(this.world);
    this.picture.tick(state.at_ms, 0);
    setText(this.clock, `${number(state.at_ms)} ms`);
    setText(this.queueCount, plural(state.queue.length, "bucket"));
    keyed(this.queue, state.queue, (one) => `${one.level}/${one.bucket}`, () => h("li", {}, h("time"), h("b"), h("span")), (item, one) => {
      setText(item.children[0], `${number(one.opens_ms)} ms`);
      setText(item.children[1], `level ${one.level}, bucket ${one.bucket}`);
      setText(item.children[2], one.tasks.length > 8 ? plural(one.tasks.length, "task") : one.tasks.join(" "));
    });
    keyed(this.log, [...state.log].reverse().map((one, index) => ({ ...one, key: state.log.length - index })), (one) => one.key,
      () => h("li", {}, h("time"), h("span")), (item, one) => {
        setText(item.children[0], duration(one.at_ms));
        setText(item.children[1], one.text);
      });
    const { counts } = state;
    const facts = [
      ["The wheel", `${plural(counts.added, "insertion")} and ${plural(counts.fell, "fall")} to a finer level, each in constant time; ${plural(counts.buckets, "bucket")} opened`],
      ["A heap of tasks", `${plural(counts.comparisons, "comparison")} for the same tasks`],
      ["Cancelled", `${plural(counts.cancelled, "task")}: unlinked at once here; in asyncio's heap they stay until they are due, ${plural(state.heap, "timer")} now for ${plural(this.world.total("purgatory", "num_delayed"), "task")}`],
    ];
    keyed(this.counts, facts, ([name]) => name, ([name]) => h("div", {}, h("dt", {}, name), h("dd")), (item, [, text]) => setText(item.lastChild, text));
  }
}
