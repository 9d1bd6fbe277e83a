// Playback of a recorded run: slider and keys move in time; each moment looks as it did live.

import { App } from "page/app.js";
import { makeBeside } from "page/beside.js";
import { makeCourse } from "page/course.js";
import { h, setAttribute, setText, svg } from "page/dom.js";
import { lastBefore, Recorded, unpack } from "page/recorded.js";
import { ratesOf } from "page/world.js";

const RATES_OVER_MS = 2_000;
const SPEEDS = [0.01, 0.05, 0.2, 1, 4];
const SMALL_STEP_MS = 10;
const MOST_ENDED = 40;

export async function replay(text) {
  const data = await unpack(text);
  const runs = data.runs.map((run) => new Recorded(run));
  document.title = runs[0].title;
  new Player(runs, data.difference).open();
}

// Panels that are removed unless the run's pictures have parts of that kind.
const KIND_OF_PANEL = { brokers: ["broker"], partitions: ["partition"], groups: ["group"], transactions: ["transaction", "producer"] };

class Player {
  // `difference` is where the second of two runs first differs from the first.
  constructor(runs, difference) {
    const [recorded] = runs;
    this.runs = runs;
    this.difference = difference;
    this.recorded = recorded;
    this.nowMs = recorded.startMs;
    this.speed = 0.2;
    this.isPlaying = false;
    this.about = "";
    this.app = new App({ rateWindowMs: -Infinity });
    this.context = this.app.context;
    this.app.clockText = seconds;
    this.context.recorded = recorded;
    this.context.goTo = (ms) => this.go(ms);
    this.app.addWide("course", makeCourse(this.context));
    if (runs.length > 1) this.app.addWide("beside", makeBeside(this.context, runs, difference, (run) => this.use(run)));
    this.message = h("p", { class: "failure" });
    this.app.figures.before(this.message);
    this.use(recorded);
    document.addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("hashchange", () => this.openHash());
  }

  // Makes all panels and the bar show this run, at the current time.
  use(recorded) {
    this.recorded = this.context.recorded = recorded;
    const { failure, cut } = recorded;
    setText(this.app.title, recorded.title);
    setText(this.app.state, failure ? "failed" : "recorded");
    setAttribute(this.app.state, "class", `pill ${failure ? "lost" : "asleep"}`);
    this.message.replaceChildren(h("b", {}, failure ?? ""), cut ? ` The file is ${cut}.` : "");
    this.message.hidden = !failure && !cut;
    this.app.keep((name) => KIND_OF_PANEL[name]?.every((kind) => !recorded.kinds.has(kind)) !== true && (name !== "requests" || recorded.clients.length > 0));
    const bar = this.makeBar();
    if (this.bar) this.bar.replaceWith(bar);
    else document.getElementById("page").append(bar);
    this.bar = bar;
    this.show(this.nowMs);
  }

  open() {
    if (!this.openHash()) this.go(this.recorded.failure ? this.recorded.end_ms : this.recorded.startMs);
    let last = performance.now();
    const frame = (clock) => {
      const passed = (clock - last) * this.speed;
      last = clock;
      if (this.isPlaying) {
        const next = Math.min(this.nowMs + passed, this.recorded.end_ms);
        this.show(next);
        if (next >= this.recorded.end_ms) this.play(false);
      }
      this.app.tick(this.nowMs, this.isPlaying ? this.speed : 0, clock);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  openHash() {
    const match = /(?:^|[#&])t=([\d.]+)/.exec(location.hash);
    if (match) this.show(Number(match[1]) * 1000);
    return match !== null;
  }

  // Goes to a time, and puts it into the address.
  go(ms) {
    this.show(ms);
    history.replaceState(null, "", `#t=${seconds(this.nowMs)}`);
  }

  show(ms) {
    const { recorded, context } = this;
    this.nowMs = Math.min(Math.max(ms, recorded.startMs), recorded.end_ms);
    const world = recorded.worldAt(this.nowMs);
    context.nowMs = this.nowMs;
    context.events = recorded.eventsUntil(this.nowMs).reverse();
    const ended = recorded.ended.slice(0, lastBefore(recorded.ended, this.nowMs, (one) => one.atMs) + 1);
    context.ended = ended.slice(-MOST_ENDED).reverse();
    const earlierMs = Math.max(this.nowMs - RATES_OVER_MS, recorded.startMs);
    context.rates = ratesOf(recorded.worldAt(earlierMs), world);
    context.requestsBefore = { rows: recorded.requestsUntil(this.nowMs - 1000), seconds: 1 };
    this.app.show(world);
    this.drawBar();
  }

  play(isPlaying) {
    this.isPlaying = isPlaying;
    if (isPlaying && this.nowMs >= this.recorded.end_ms) this.show(this.recorded.startMs);
    setText(this.playButton, isPlaying ? "❚❚" : "▶");
    setAttribute(this.playButton, "aria-label", isPlaying ? "Stop" : "Play");
    if (!isPlaying) this.go(this.nowMs);
  }

  // Goes to the next or previous event of the current choice.
  step(direction) {
    const times = this.recorded.timesOf(this.about);
    const near = 0.5;
    const next = direction > 0 ? times.find((ms) => ms > this.nowMs + near) : times.findLast((ms) => ms < this.nowMs - near);
    if (this.isPlaying) this.play(false);
    this.go(next ?? (direction > 0 ? this.recorded.end_ms : this.recorded.startMs));
  }

  onKey(event) {
    if (event.target.closest("input[type=search], select, tr") || event.ctrlKey || event.metaKey || event.altKey) return;
    const { recorded } = this;
    const small = event.shiftKey ? SMALL_STEP_MS : null;
    const actions = {
      " ": () => this.play(!this.isPlaying),
      ArrowRight: () => (small ? this.go(this.nowMs + small) : this.step(1)),
      ArrowLeft: () => (small ? this.go(this.nowMs - small) : this.step(-1)),
      Home: () => this.go(recorded.startMs), End: () => this.go(recorded.end_ms), f: () => this.go(recorded.end_ms),
      d: this.difference ? () => this.go(this.difference.at_ms) : undefined,
    };
    if (!actions[event.key] || event.target.closest("button") && event.key === " ") return;
    event.preventDefault();
    actions[event.key]();
  }

  makeBar() {
    const { recorded } = this;
    const button = (text, label, onclick) => h("button", { "aria-label": label, title: label, onclick }, text);
    this.playButton = button("▶", "Play", () => this.play(!this.isPlaying));
    this.time = h("output", { class: "time" });
    this.slider = h("input", {
      type: "range", min: recorded.startMs, max: recorded.end_ms, step: 1, "aria-label": "Time of the run, in ms",
      oninput: () => {
        this.isPlaying = false;
        this.go(Number(this.slider.value));
      },
    });
    const speed = h("select", { "aria-label": "Speed", onchange: () => { this.speed = Number(speed.value); } },
      ...SPEEDS.map((value) => h("option", { value, selected: value === this.speed }, `${value} ×`)));
    const groups = Object.entries(recorded.names()).filter(([, names]) => names.length);
    const about = h("select", { "aria-label": "Steps go to events of", onchange: () => { this.about = about.value; } },
      h("option", { value: "" }, "all events"),
      ...groups.map(([label, names]) => h("optgroup", { label }, ...names.map((name) => h("option", { value: name, selected: name === this.about }, name)))));
    this.about = about.value;
    return h("footer", { class: "bar-of-time", "aria-label": "Time of the run" },
      h("div", { class: "transport" },
        button("|◀", "Previous event (left arrow)", () => this.step(-1)), this.playButton, button("▶|", "Next event (right arrow)", () => this.step(1)),
        this.time, speed, about, recorded.failure ? button("Failure", "Go to the failure (f)", () => this.go(recorded.end_ms)) : null),
      h("div", { class: "track" }, this.makeTrack(), this.slider));
  }

  // Draws faults as bands, events as ticks and the failure above the slider.
  makeTrack() {
    const { recorded } = this;
    const total = Math.max(recorded.end_ms - recorded.startMs, 1);
    const at = (ms) => (ms - recorded.startMs) / total * 1000;
    const rows = [];
    const bands = recorded.bands.map((band) => {
      const row = rows.findIndex((end) => end <= band.from_ms);
      const place = row < 0 ? rows.length : row;
      rows[place] = Math.max(band.to_ms, band.from_ms + total / 100);
      return svg("rect", { class: "band", x: at(band.from_ms), width: Math.max(at(band.to_ms) - at(band.from_ms), 3), y: (place % 3) * 7, height: 5, rx: 1.5 }, svg("title", {}, `${seconds(band.from_ms)} s: ${band.text}`));
    });
    const ticks = recorded.events.filter((one) => one.kind !== "note").map((one) => svg("path", { class: `tick is-${one.kind}`, d: `M${at(one.atMs).toFixed(1)} 22v6` }));
    const failure = recorded.failure ? svg("path", { class: "end", d: `M${at(recorded.end_ms) - 1.5} 0v28` }) : null;
    return svg("svg", { viewBox: "0 0 1000 28", preserveAspectRatio: "none", role: "img", "aria-label": `${recorded.bands.length} faults and ${recorded.events.length} events` }, ...ticks, ...bands, failure);
  }

  drawBar() {
    setText(this.time, `${seconds(this.nowMs)} s`);
    if (document.activeElement !== this.slider || Number(this.slider.value) !== Math.round(this.nowMs)) this.slider.value = this.nowMs;
    setAttribute(this.slider, "aria-valuetext", `${seconds(this.nowMs)} seconds`);
  }
}

export function seconds(ms) {
  return (ms / 1000).toFixed(3);
}
