// The tab Lessons: a scenario of the comparison in steps, with the picture of each, and what a real Kafka answered.

import { App } from "./page/app.js";
import { h, keyed, panel, setAttribute, setText } from "./page/dom.js";
import { eventsBetween } from "./page/events.js";
import { plural } from "./page/words.js";
import { endings, World } from "./page/world.js";

// The client id of scenarios: what one of theirs waits for is selected in the picture.
const CLIENT = "broker-sim-compare";

export function makeLessonsTab(machine, lessons) {
  return new LessonsTab(machine, lessons).element;
}

class LessonsTab {
  constructor(machine, lessons) {
    this.machine = machine;
    this.lessons = lessons;
    this.played = new Map();
    this.place = 0;
    this.list = h("ol", { class: "lessons" }, ...lessons.map((lesson) => h("li", {},
      h("button", { onclick: () => this.open(lesson.name), title: lesson.about }, lesson.title))));
    this.about = h("p", { class: "about" }, "Each lesson plays a scenario in which a real Kafka was compared with this one. Choose one: it runs in this tab.");
    this.steps = h("ol", { class: "steps", "aria-live": "polite", tabindex: 0, "aria-label": "Steps so far" });
    this.compared = h("p", { class: "compared" });
    this.back = h("button", { disabled: true, onclick: () => this.go(this.place - 1), title: "Left arrow" }, "Back");
    this.next = h("button", { class: "primary", disabled: true, onclick: () => this.go(this.place + 1), title: "Right arrow" }, "Next step");
    this.all = h("button", { disabled: true, onclick: () => this.go(Infinity) }, "To the end");
    this.count = h("span", { class: "step-count" });
    const list = panel("Lessons", null, this.list);
    const lesson = panel("", null, h("div", { class: "body" }, this.about,
      h("div", { class: "row" }, this.next, this.back, this.all, this.count), this.steps, this.compared));
    this.title = lesson.element.querySelector("h2");
    setText(this.title, "Step by step");
    this.element = h("section", { class: "lessons-tab" }, h("div", { class: "grid" },
      h("div", { class: "column list" }, list.element), h("div", { class: "column" }, lesson.element)));
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.openAddress();
    addEventListener("hashchange", () => this.openAddress());
  }

  openAddress() {
    const [, name, place] = /^#lessons=([\w]+)(?:\.(\d+))?$/.exec(location.hash) ?? [];
    if (name) this.open(name, Number(place ?? 1) - 1);
  }

  async open(name, place = 0) {
    const lesson = this.lessons.find((each) => each.name === name) ?? { title: "Step by step", about: "" };
    this.name = name;
    for (const [index, item] of [...this.list.children].entries()) setAttribute(item.firstChild, "aria-current", this.lessons[index].name === name ? "true" : null);
    setText(this.title, lesson.title);
    setText(this.about, lesson.about);
    this.steps.replaceChildren();
    setText(this.compared, lesson.about && "It is played, to its end.");
    try {
      if (!this.played.has(name)) this.played.set(name, stepsOf(await this.machine.ask("lesson", name)));
    } catch (error) {
      if (this.name === name) setText(this.compared, lesson.about ? `The lesson does not hold: ${error.message}` : error.message.replace(/^\w+: /, ""));
      return;
    }
    if (this.name !== name) return; // another one was chosen meanwhile
    this.shown = this.played.get(name);
    this.makeApp();
    this.place = -1;
    this.go(place);
    this.next.focus();
  }

  makeApp() {
    this.app?.grid.remove();
    this.app = new App();
    this.app.clockText = (atMs) => `${(atMs / 1000).toFixed(3)} s`;
    this.app.head.remove();
    this.app.figures.remove();
    const kinds = new Set(this.shown.flatMap((step) => [...step.world.parts.keys()].map((name) => name.split("/")[0])));
    const kindOf = { groups: "group", transactions: "transaction" };
    this.app.keep((name) => name !== "requests" && (!kindOf[name] || kinds.has(kindOf[name])));
    this.element.append(this.app.grid);
  }

  // Goes to a step: earlier ones stay above it, later ones are not told.
  go(place) {
    const { shown } = this;
    if (!shown) return;
    this.place = Math.min(Math.max(place, 0), shown.length - 1);
    const step = shown[this.place];
    const { context } = this.app;
    const course = shown.slice(0, this.place + 1).filter((one) => one.part === step.part);
    context.events = course.flatMap((one) => one.events).reverse().map((event, id, all) => ({ ...event, id: all.length - id }));
    context.ended = course.flatMap((one) => one.ended).reverse();
    context.view.operation = ownOf(step.world);
    this.app.show(step.world);
    this.app.tick(step.world.atMs, 0, performance.now());
    keyed(this.steps, shown.slice(0, this.place + 1), (one) => `${this.name}/${one.index}`, makeStep, (item, one) => setAttribute(item, "aria-current", one.index === this.place ? "step" : null));
    this.steps.children[this.place].scrollIntoView({ block: "nearest" });
    setText(this.count, `${this.place + 1} of ${shown.length}, ${(step.world.atMs / 1000).toFixed(3)} s of virtual time`);
    const isOver = this.place === shown.length - 1;
    this.next.disabled = this.all.disabled = isOver;
    this.back.disabled = this.place === 0;
    setText(this.compared, isOver ? shown.compared : "");
    history.replaceState(null, "", `#lessons=${this.name}.${this.place + 1}`);
  }

  onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || event.target.closest("input, select, tr, .lessons") || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.go(this.place + step);
  }
}

// Returns the steps of a lesson that was played, each with its world, what happened since the step before, and its row.
function stepsOf(lesson) {
  const steps = [];
  for (const part of lesson.parts) {
    let before = null;
    for (const step of part.steps) {
      const world = (before ?? new World()).after(step.change);
      steps.push({
        ...step, world, part, index: steps.length, isFirst: before === null && steps.length > 0,
        events: before ? eventsBetween(before, world) : [], ended: before ? endings(before, world) : [],
      });
      before = world;
    }
  }
  steps.compared = lesson.parts.map((part) =>
    `${part.agree} of ${plural(part.rows, "row")} of the scenario ${part.scenario.replaceAll("_", " ")} are as Kafka ${part.kafka} answered, recorded on ${part.recorded}.`).join(" ");
  return steps;
}

// Returns the key of the operation that a lesson's client waits in: a join, a request, at last a session.
function ownOf(world) {
  const own = world.parked.filter((one) => one.client_id === CLIENT || one.purgatory === "Rebalance");
  return (own.find((one) => one.purgatory !== "Heartbeat") ?? own[0])?.key ?? null;
}

function makeStep(step) {
  const item = h("li", { class: step.isFirst ? "anew" : null }, h("p", {}, step.text));
  const line = step.row ? `row “${step.row.step}”, due ${step.row.due}` : step.line && step.line !== step.at ? step.line : "";
  if (line) item.append(h("code", {}, line));
  if (step.row) item.append(rowOf(step.row, step.part));
  return item;
}

// Draws a row of the comparison: what the recorded Kafka answered, and what is answered here.
function rowOf({ here, kafka, agrees }, { kafka: version }) {
  const names = Object.keys({ ...kafka?.facts, ...here.facts });
  const cell = (answer, name) => h("td", {}, text(answer?.facts[name]));
  const main = [here.facts.error_code, here.facts.records === undefined ? null : plural(here.facts.records, "record")].filter(Boolean).join(", ");
  return h("details", { class: agrees ? "row-of good" : "row-of bad" },
    h("summary", {}, `${agrees ? "As" : "NOT as"} Kafka ${version}${main ? `: ${main}` : ""}`, h("small", {}, times(here, kafka))),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", {}, `Kafka ${version}`), h("th", {}, "here"))),
      h("tbody", {}, ...names.map((name) => h("tr", {}, h("th", {}, name.replaceAll("_", " ")), cell(kafka, name), cell(here, name))))));
}

function times(here, kafka) {
  return kafka?.ms || here.ms ? ` after ${kafka?.ms ?? "?"} ms there, ${here.ms} ms here` : "";
}

function text(value) {
  return value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}
