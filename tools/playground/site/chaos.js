// The tab Chaos: a program, the search for a seed that fails, and what is told of it.

import { Editor } from "./editor.js";
import { fromFragment, toFragment } from "./link.js";
import { StoppedError } from "./machine.js";
import { h, keyed, panel, setAttribute, setText } from "./page/dom.js";
import { plural } from "./page/words.js";
import { drawCourse } from "./timeline.js";

const HELPER = "shop";
const FIRST_EXAMPLE = "commit_before_work";
const OWN = "my_test";
const FIRST_WORDS = "Each seed draws other faults. Run searches for one that the program does not survive.";
const TARGETS = { worker: "on a worker", workers: "on all workers", broker: "on a broker", brokers: "on several brokers", link: "on a link" };
const OWN_TEXT = `"""A test of your own: the cluster is chaos.kafka, workers are what faults hit."""

import pytest
from shop import consumer, place_orders


@pytest.mark.chaos(duration_s=12)
async def test_mine(chaos):
    seen = set()

    async def worker():
        async with consumer(chaos, "orders") as orders:
            async for order in orders:
                seen.add(int(order.value))
                await orders.commit()

    await place_orders(chaos)
    chaos.start(worker, count=2)
    await chaos.faults_over()
    await chaos.eventually(lambda: len(seen) == 10, "each order is seen", within_s=30)
`;

export function makeChaos(machine, facts) {
  return new ChaosTab(machine, facts).element;
}

class ChaosTab {
  constructor(machine, { examples, kinds }) {
    this.machine = machine;
    this.examples = examples;
    this.module = FIRST_EXAMPLE;
    this.files = { [FIRST_EXAMPLE]: examples[FIRST_EXAMPLE], [HELPER]: examples[HELPER] };
    this.file = FIRST_EXAMPLE;
    this.seeds = [];
    this.failure = null;
    this.isBusy = false;
    this.makeProgram();
    this.makeSearch(kinds);
    this.makeResult();
    this.element = h("section", { class: "grid chaos" },
      h("div", { class: "column" }, this.program.element),
      h("div", { class: "column" }, this.search.element, this.result.element));
    machine.addEventListener("seed", ({ detail }) => this.takeSeed(detail));
    machine.addEventListener("run", ({ detail }) => setText(this.said, `seed ${this.seeds.at(-1)?.seed ?? ""} fails; it is shrunk: run ${detail}`));
    machine.addEventListener("printed", ({ detail }) => this.print(detail));
    this.showFile(this.file);
    this.openLink();
  }

  makeProgram() {
    const names = Object.keys(this.examples).filter((name) => name !== HELPER);
    this.example = h("select", { "aria-label": "Example", onchange: () => this.openExample(this.example.value) },
      ...names.map((name) => h("option", { value: name }, words(name))), h("option", { value: OWN }, "A test of your own"));
    this.example.value = this.module;
    this.fileTabs = h("div", { class: "files", role: "tablist", "aria-label": "Files" });
    const place = h("div", { class: "editor" });
    this.editor = new Editor(place, { onRun: () => this.run(), onChange: () => this.changed() });
    this.printed = h("pre", { class: "printed", hidden: true, "aria-label": "What the program printed" });
    this.program = panel("Program", null, this.fileTabs, place, this.printed);
    this.program.aside.append(this.example);
  }

  makeSearch(kinds) {
    this.test = h("select", { "aria-label": "Test" });
    this.first = h("input", { type: "number", min: 0, value: 0, class: "short" });
    this.count = h("input", { type: "number", min: 1, max: 10_000, value: 20, class: "short" });
    this.order = h("select", {}, h("option", { value: "" }, "as the test says"), h("option", { value: "fifo" }, "first in, first out"), h("option", { value: "seeded" }, "drawn by the seed"));
    this.duration = h("input", { type: "number", min: 1, placeholder: "–", class: "short" });
    this.workers = h("input", { type: "number", min: 1, placeholder: "–", class: "short" });
    this.brokers = h("input", { type: "number", min: 1, placeholder: "–", class: "short" });
    this.kinds = kinds.map((kind) => ({ ...kind, box: h("input", { type: "checkbox", value: kind.name, onchange: () => this.showKinds() }) }));
    const groups = Object.groupBy ? Object.groupBy(this.kinds, (kind) => kind.on) : groupBy(this.kinds, (kind) => kind.on);
    const boxes = Object.entries(groups).map(([on, each]) => h("fieldset", {}, h("legend", {}, TARGETS[on] ?? on),
      ...each.map((kind) => h("label", { class: "check" }, kind.box, kind.name))));
    this.kindsSummary = h("summary", {}, "");
    this.start = h("button", { class: "primary", onclick: () => this.run(), title: "Ctrl+Enter" }, "Run");
    this.halt = h("button", { disabled: true, onclick: () => this.machine.stop() }, "Stop");
    this.said = h("p", { class: "said", role: "status" }, FIRST_WORDS);
    this.strip = h("ol", { class: "strip", "aria-label": "Seeds that have run" });
    const field = (title, input) => h("label", { class: "field" }, h("span", {}, title), input);
    this.search = panel("Search", null, h("div", { class: "body" },
      h("div", { class: "fields" }, field("Test", this.test), field("First seed", this.first), field("Seeds", this.count)),
      h("details", {}, h("summary", {}, "Settings"), h("div", { class: "fields" }, field("Seconds of faults", this.duration), field("Workers", this.workers), field("Brokers", this.brokers), field("Order of tasks", this.order))),
      h("details", {}, this.kindsSummary, h("div", { class: "kinds" }, ...boxes)),
      h("div", { class: "row" }, this.start, this.halt), this.strip, this.said));
    this.showKinds();
  }

  makeResult() {
    this.resultBody = h("div", { class: "body result" }, h("p", { class: "empty" }, "Nothing has failed yet."));
    this.result = panel("What fails", null, this.resultBody);
    this.link = h("button", { onclick: () => this.copyLink() }, "Copy link");
    this.result.aside.append(this.link);
  }

  showKinds() {
    const names = this.kinds.filter((kind) => kind.box.checked).map((kind) => kind.name);
    setText(this.kindsSummary, names.length ? `Faults: ${names.join(", ")}` : `Faults: those of the test, else ${this.kinds.filter((kind) => kind.drawn).length} kinds`);
  }

  // -- the files of the program ------------------------------------------------------------------

  openExample(name) {
    this.module = name;
    this.files = { [name]: name === OWN ? OWN_TEXT : this.examples[name], [HELPER]: this.examples[HELPER] };
    this.showFile(name);
    this.forget();
    setText(this.said, FIRST_WORDS);
  }

  showFile(name) {
    this.file = name;
    this.editor.text = this.files[name];
    keyed(this.fileTabs, Object.keys(this.files), (each) => each, (each) => h("button", { role: "tab", onclick: () => this.showFile(each) }, `${each}.py`),
      (tab, each) => setAttribute(tab, "aria-selected", String(each === name)));
    if (name === this.module) this.showTests();
  }

  changed() {
    this.files[this.file] = this.editor.text;
    if (this.file === this.module) this.showTests();
  }

  // Shows the tests that the text seems to have; Python tells later whether it does.
  showTests() {
    const names = [...this.files[this.module].matchAll(/^(?:async )?def (test_\w+)/gm)].map((match) => match[1]);
    keyed(this.test, names, (name) => name, (name) => h("option", { value: name }, name));
  }

  settings() {
    const kinds = this.kinds.filter((kind) => kind.box.checked).map((kind) => kind.name);
    const number = (input) => (input.value === "" ? null : Number(input.value));
    return {
      faults: kinds.length ? kinds : null, order: this.order.value || null, duration_s: number(this.duration),
      workers: number(this.workers), brokers: number(this.brokers),
    };
  }

  // -- the search --------------------------------------------------------------------------------

  async run(verb = "search", seed = null) {
    if (this.isBusy) return;
    this.setBusy(true);
    this.forget();
    try {
      await this.machine.start();
      const used = await this.machine.ask("use", this.files);
      if (used.error) return this.showError(used.error);
      if (!used.tests.length) {
        setText(this.said, "The program ran to its end; it has no test.");
        return;
      }
      if (!used.tests.includes(this.test.value)) {
        keyed(this.test, used.tests, (name) => name, (name) => h("option", { value: name }, name));
      }
      const what = { test: `${this.module}:${this.test.value}`, settings: JSON.stringify(this.settings()) };
      const checked = await this.machine.ask("check", what);
      if (checked.error) return this.showError(checked.error);
      this.began = performance.now();
      const first = seed ?? Number(this.first.value);
      const last = seed ?? first + Number(this.count.value) - 1;
      setText(this.said, `seed ${first} runs`);
      const failure = await this.machine.ask("search", { ...what, first, last });
      if (failure?.wrong) {
        this.showError(failure.wrong);
        setText(this.said, `Seed ${failure.seed} fails.`);
      } else if (failure) this.showFailure(failure);
      else setText(this.said, `${plural(this.seeds.length, "seed")} passed, ${this.rate()} a second. More seeds find rarer failures.`);
    } catch (error) {
      if (error instanceof StoppedError) setText(this.said, `stopped after ${plural(this.seeds.length, "seed")}; Python starts again`);
      else this.showError({ text: error.message, places: [] });
    } finally {
      this.setBusy(false);
    }
  }

  setBusy(isBusy) {
    this.isBusy = isBusy;
    this.start.disabled = isBusy;
    this.halt.disabled = !isBusy;
    setAttribute(this.element, "aria-busy", String(isBusy));
  }

  forget() {
    this.seeds = [];
    this.failure = null;
    keyed(this.strip, [], (one) => one.seed);
    this.editor.mark(null);
    this.printed.hidden = true;
    this.printed.textContent = "";
    this.resultBody.replaceChildren(h("p", { class: "empty" }, "Nothing has failed yet."));
  }

  rate() {
    return (this.seeds.length / ((performance.now() - this.began) / 1000)).toFixed(1);
  }

  takeSeed(outcome) {
    this.seeds.push(outcome);
    keyed(this.strip, this.seeds, (one) => one.seed, (one) => h("li", {
      class: one.invariant ? "bad" : "good",
      title: `seed ${one.seed}: ${one.invariant ?? "passes"}, ${plural(one.faults, "fault")}, ${one.virtual_s.toFixed(1)} s of virtual time in ${one.s.toFixed(2)} s`,
    }, h("span", { class: "hidden" }, `seed ${one.seed} ${one.invariant ? "fails" : "passes"}`)));
    setText(this.said, outcome.invariant ? `seed ${outcome.seed} fails; it is shrunk` : `seed ${outcome.seed} passes, ${this.rate()} seeds a second`);
  }

  print(text) {
    this.printed.hidden = false;
    this.printed.textContent = `${this.printed.textContent}${text}\n`.slice(-20_000);
  }

  // -- what fails --------------------------------------------------------------------------------

  showError({ text, places }) {
    setText(this.said, "The program does not run.");
    this.resultBody.replaceChildren(h("h3", { class: "bad" }, text), this.placesOf(places));
    this.markLast(places);
  }

  placesOf(places) {
    return h("ol", { class: "places" }, ...places.map((place) => h("li", {}, h("button", { class: "place", onclick: () => this.goTo(place) },
      `${place.file}.py, line ${place.line}${place.function ? `, in ${place.function}` : ""}`))));
  }

  goTo(place) {
    if (place.file !== this.file && place.file in this.files) this.showFile(place.file);
    if (place.file === this.file) this.editor.mark(place.line);
  }

  markLast(places) {
    const own = places.filter((place) => place.file in this.files);
    const place = own.findLast((each) => each.file === this.module) ?? own.at(-1);
    if (place) this.goTo(place);
  }

  showFailure(failure) {
    this.failure = failure;
    setText(this.said, `Seed ${failure.seed} fails. It was shrunk in ${plural(failure.tries, "run")} and ${failure.s.toFixed(1)} s, and ${failure.repeats ? "fails the same way when it is run again" : "DOES NOT REPEAT: it depends on more than the seed"}.`);
    const copy = h("button", { onclick: () => copyText(copy, failure.as_test) }, "Copy test");
    const replay = h("button", { onclick: () => this.openReplay(), title: "Brokers, what waits and the timing wheel at each moment, in a tab of its own" }, "Play this run");
    const again = h("button", { onclick: () => this.run("examine", failure.seed) }, "Run this seed");
    this.resultBody.replaceChildren(
      h("h3", { class: "bad" }, failure.error),
      h("p", { class: "shrunk" }, h("b", {}, plural(failure.faults, "fault")), " drawn, ", h("b", {}, failure.course.length), " needed",
        h("small", {}, `trace ${failure.digest.slice(0, 16)}, ${failure.virtual_s.toFixed(3)} s of virtual time: the same on every machine`)),
      h("ul", { class: "faults" }, ...failure.course.map((fault) => h("li", {}, h("time", {}, `${fault.at_s.toFixed(3)} s`), fault.text))),
      drawCourse(failure),
      failure.traceback?.places.length ? this.placesOf(failure.traceback.places) : "",
      h("details", {}, h("summary", {}, "The report, as broker-sim chaos prints it"), h("pre", { class: "report", tabindex: 0 }, failure.report)),
      h("div", { class: "row" }, replay, copy, again));
    if (failure.traceback) this.markLast(failure.traceback.places);
  }

  // Opens the failing run in a tab of its own, which has a copy of this one's session storage.
  async openReplay() {
    try {
      sessionStorage.setItem("run", await this.machine.ask("recording"));
      window.open("replay.html");
    } catch (error) {
      setText(this.said, `The run cannot be played: ${error.message}`);
    }
  }

  // -- links -------------------------------------------------------------------------------------

  async copyLink() {
    const seed = this.failure?.seed ?? null;
    const address = new URL(await toFragment({ files: this.files, module: this.module, test: this.test.value, settings: this.settings(), seed }), location.href);
    history.replaceState(null, "", address.hash);
    copyText(this.link, address.href);
  }

  async openLink() {
    let state;
    try {
      state = await fromFragment(location.hash);
    } catch {
      setText(this.said, "The link is damaged: a part of it is missing. Ask for it again.");
      return;
    }
    if (!state) return;
    this.files = state.files;
    this.module = state.module;
    if (![...this.example.options].some((option) => option.value === state.module)) this.example.add(new Option(`${state.module} of the link`, state.module));
    this.example.value = state.module;
    this.showFile(state.module);
    this.test.value = state.test;
    const { faults, order, duration_s: duration, workers, brokers } = state.settings;
    for (const kind of this.kinds) kind.box.checked = faults?.includes(kind.name) ?? false;
    this.order.value = order ?? "";
    this.duration.value = duration ?? "";
    this.workers.value = workers ?? "";
    this.brokers.value = brokers ?? "";
    this.showKinds();
    if (state.seed !== null) {
      this.first.value = state.seed;
      setText(this.said, `The link has a program whose seed ${state.seed} fails. Read it, then press Run: it runs in this tab, and nowhere else.`);
    }
  }
}

function words(name) {
  const text = name.replaceAll("_", " ");
  return text[0].toUpperCase() + text.slice(1);
}

function groupBy(items, keyOf) {
  const groups = {};
  for (const item of items) (groups[keyOf(item)] ??= []).push(item);
  return groups;
}

async function copyText(button, text) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    setText(button, "Copied");
  } catch {
    setText(button, "Copy it from the address");
  }
  setTimeout(() => setText(button, before), 2_000);
}
