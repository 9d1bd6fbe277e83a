// The entry point: live at a control port, or with the recording in the file.

import { App } from "page/app.js";
import { h, setAttribute, setText } from "page/dom.js";
import { eventsBetween } from "page/events.js";
import { Live } from "page/live.js";
import { replay } from "page/replay.js";
import { Verbs } from "page/verbs.js";
import { endings, ratesOf, World } from "page/world.js";

const MOST_EVENTS = 500;
const MOST_ENDED = 100;
const QUERY_AFTER_MS = 250;
const RATES_OVER_MS = 2_000;
const STATES = { live: "live", frozen: "frozen", lost: "no answer, trying again", asleep: "asleep" };

async function main() {
  const recording = document.getElementById("recording");
  if (recording) await replay(recording.textContent);
  else await watch();
}

async function watch() {
  const live = new Live((change, isFirst) => take(change, isFirst), (state) => setState(state));
  let session = await live.session();
  while (session === null) {
    live.setToken(await askForToken());
    session = await live.session();
  }
  const verbs = new Verbs(session, live.headers);
  const canWrite = !session.read_only;
  let isFrozen = false;
  let received = { atMs: 0, clock: 0 };
  let wallShiftMs = 0;
  let newest = null;
  let eventId = 0;
  const history = [];
  let searching = 0;
  const app = new App({
    canWrite,
    verbText: (name) => verbs.text(name),
    call: (name, values) => verbs.call(name, values),
    open: (name, values) => verbs.open(name, values),
    onQuery: () => {
      clearTimeout(searching);
      const { search, bucket } = app.context.view;
      searching = setTimeout(() => live.restart({ search, level: bucket?.level ?? 0, bucket: bucket?.index ?? 0 }), QUERY_AFTER_MS);
    },
  });
  const { context } = app;
  app.clockText = (atMs) => new Date(atMs + wallShiftMs).toLocaleTimeString([], { hour12: false });
  const freeze = h("button", { onclick: () => setFrozen(!isFrozen), title: "Hold the picture still (space)" }, "Freeze");
  app.tools.prepend(...(canWrite ? [h("button", { class: "primary", onclick: () => verbs.openAll() }, "Actions")] : [h("span", { class: "tag" }, "read-only")]), freeze);

  function setState(state) {
    const shown = state === "live" && isFrozen ? "frozen" : state;
    setText(app.state, STATES[shown]);
    setAttribute(app.state, "class", `pill ${shown}`);
  }

  function setFrozen(value) {
    isFrozen = value;
    setText(freeze, isFrozen ? "Unfreeze" : "Freeze");
    setAttribute(freeze, "aria-pressed", isFrozen);
    setState("live");
    if (!isFrozen && newest) app.show(newest);
  }

  function take(change, isFirst) {
    const before = newest;
    const world = (isFirst || !newest ? new World() : newest).after(change);
    newest = world;
    received = { atMs: world.atMs, clock: performance.now() };
    wallShiftMs = Date.now() - world.atMs;
    setText(app.title, world.cluster?.cluster_id ?? "");
    if (before && !isFirst) {
      context.ended = [...endings(before, world).reverse(), ...context.ended].slice(0, MOST_ENDED);
      const events = eventsBetween(before, world).map((event) => ({ ...event, id: (eventId += 1) }));
      context.events = [...events.reverse(), ...context.events].slice(0, MOST_EVENTS);
    }
    history.push(world);
    while (history.length > 2 && world.atMs - history[1].atMs >= RATES_OVER_MS) history.shift();
    context.rates = ratesOf(history[0], world);
    if (!isFrozen) app.show(world);
  }

  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, button, dialog, tr")) return;
    if (event.key === " ") {
      event.preventDefault();
      setFrozen(!isFrozen);
    }
  });
  const frame = (clock) => {
    if (!isFrozen && newest) app.tick(received.atMs + performance.now() - received.clock, 1, clock);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  live.start();
}

function askForToken() {
  return new Promise((done) => {
    const input = h("input", { type: "password", "aria-label": "Token of the control port", autofocus: true, required: true });
    const form = h("form", { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      form.remove();
      done(input.value.trim());
    } }, h("h1", {}, "broker-sim"), h("p", {}, "The control port requires its token: that of --control-token-file or BROKER_SIM_CONTROL_TOKEN."), input, h("button", { class: "primary" }, "Open"));
    document.getElementById("page").append(form);
    input.focus();
  });
}

main();
