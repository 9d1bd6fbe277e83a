// The page begins here: its tabs, and the state of Python.

import { makeChaos } from "./chaos.js";
import { makeClusterTab } from "./cluster_tab.js";
import { makeLessonsTab } from "./lessons_tab.js";
import { Machine } from "./machine.js";
import { h, setAttribute, setText } from "./page/dom.js";
import { themeButton } from "./page/theme.js";
import { bytes } from "./page/words.js";
import { makeWheelTab } from "./wheel_tab.js";

const machine = new Machine();
const sizes = await (await fetch("sizes.json")).json();
const state = h("span", { class: "pill", role: "status" }, "Python is loaded with the first Run");
const loading = h("progress", { hidden: true, max: sizes.python, value: 0, "aria-label": "Download of Python" });

machine.addEventListener("starting", () => show("starting", `loading Python, ${bytes(sizes.python)}`));
machine.addEventListener("bytes", ({ detail }) => {
  if (loading.hidden) return; // of a lesson
  loading.value = detail;
  setText(state, detail < sizes.python ? `loading ${bytes(detail)} of ${bytes(sizes.python)}` : "importing the brokers");
});
machine.addEventListener("ready", ({ detail }) => show("live", `Python ${detail.python}, ready in ${(machine.readyMs / 1000).toFixed(1)} s`));
machine.addEventListener("failed", ({ detail }) => show("lost", `Python could not be loaded: ${detail}`));

function show(kind, text) {
  setAttribute(state, "class", `pill ${kind}`);
  setText(state, text);
  loading.hidden = kind !== "starting";
}

const examples = await (await fetch("examples.json")).json();
const tabs = {
  chaos: { title: "Chaos", make: () => makeChaos(machine, examples) },
  cluster: { title: "Cluster", make: () => makeClusterTab(machine) },
  lessons: { title: "Lessons", make: () => makeLessonsTab(machine, examples.lessons) },
  wheel: { title: "Timing wheel", make: () => makeWheelTab(machine) },
};
const bar = h("nav", { class: "tabs", role: "tablist", "aria-label": "Parts of the page" });
const body = h("main", {});
let current = null;

function open(name) {
  if (current === name) return;
  current = name;
  for (const [each, tab] of Object.entries(tabs)) {
    setAttribute(tab.button, "aria-selected", String(each === name));
    tab.button.tabIndex = each === name ? 0 : -1;
    if (tab.element) tab.element.hidden = each !== name;
  }
  const tab = tabs[name];
  if (!tab.element) {
    tab.element = tab.make();
    body.append(tab.element);
  }
}

function fromAddress() {
  const name = location.hash.slice(1).split("=")[0];
  return name in tabs ? name : "chaos";
}

for (const [name, tab] of Object.entries(tabs)) {
  tab.button = h("button", { role: "tab", onclick: () => {
    history.replaceState(null, "", `#${name}`);
    open(name);
  } }, tab.title);
  bar.append(tab.button);
}
bar.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const names = Object.keys(tabs);
  const next = tabs[names[(names.indexOf(current) + step + names.length) % names.length]].button;
  next.click();
  next.focus();
});
document.getElementById("page").append(
  h("header", { class: "top" }, h("h1", {}, "broker-sim"), bar, state, loading, h("div", { class: "tools" }, themeButton())), body);
open(fromAddress());
addEventListener("hashchange", () => location.hash.startsWith("#chaos=") ? location.reload() : open(fromAddress()));
