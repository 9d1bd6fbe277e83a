// The timing wheel: a ring for each level, the finest inside, a sector for each bucket, a dot for each operation.
//
// A bucket's place on its ring depends on time alone: index = deadline / tick mod size. So one picture shows the wheels
// of all purgatories, a hand goes round each ring once in tick x size, and a demoted operation visibly drops from its
// bucket to a finer ring.

import { h, keyed, panel, setAttribute, setText, svg } from "page/dom.js";
import { colour, duration, number, plural } from "page/words.js";

const VIEW = "-250 -250 500 500";
const CENTRE = 50;
const OUTSIDE = 236;
const WIDEST_RING = 56;
const DOTS_IN_BUCKET = 9;
const BLUR_MS = 600;

export function makeWheel(context) {
  const { view } = context;
  const choice = h("select", { "aria-label": "Purgatory whose wheel is shown", onchange: () => {
    view.purgatory = choice.value;
    context.selectBucket(null);
  } });
  const rings = svg("g");
  const hands = svg("g", { class: "hands" });
  const dots = svg("g");
  const middle = svg("text", { class: "wheel-count", y: 4 });
  const below = svg("text", { class: "wheel-what", y: 24 });
  const picture = svg("svg", {
    viewBox: VIEW, class: "wheel", tabindex: 0, role: "img",
    "aria-label": "Timing wheel. Arrow keys move from bucket to bucket, page up and down from level to level.",
    onkeydown: (event) => moveByKey(event, context),
  }, rings, dots);
  // Hands turn on every frame, so they have a picture of their own: the buckets below are not repainted.
  const turning = svg("svg", { viewBox: VIEW, class: "wheel turning", "aria-hidden": "true" },
    hands, svg("circle", { r: CENTRE - 8, class: "wheel-centre" }), middle, below);
  const levels = h("ol", { class: "levels" });
  const words = h("p", { class: "wheel-words", "aria-live": "polite" });
  const { element, aside } = panel("Timing wheel", null,
    h("div", { class: "wheel-body" }, h("div", { class: "wheel-pictures" }, picture, turning), h("div", { class: "wheel-side" }, levels, words)));
  aside.append(choice);
  let shown = [];

  return {
    element,
    draw(world) {
      drawChoice(choice, world, view);
      const purgatories = world.all("purgatory").filter((one) => isChosen(one, view));
      shown = levelsOf(purgatories);
      context.levels = shown;
      drawRings(rings, shown, context);
      drawDots(dots, world.parked.filter((one) => isChosen({ broker: one.broker, name: one.purgatory }, view)), shown, context);
      setText(middle, number(purgatories.reduce((sum, one) => sum + one.num_delayed, 0)));
      setText(below, "parked");
      drawLevels(levels, shown, context);
      drawHands(hands, shown);
    },
    tick(nowMs, speed) {
      turnHands(hands, shown, nowMs, speed);
      setText(words, wordsOf(context, nowMs));
    },
  };
}

export function isChosen(purgatory, view) {
  return view.purgatory === "" || view.purgatory === `${purgatory.broker}/${purgatory.name}`;
}

function drawChoice(choice, world, view) {
  const busy = world.all("purgatory").filter((one) => one.num_delayed || one.watched || one.expired
    || `${one.broker}/${one.name}` === view.purgatory);
  const items = [{ key: "", text: "all purgatories" }, ...busy.map((one) => ({
    key: `${one.broker}/${one.name}`, text: `broker ${one.broker} ${one.name} · ${one.num_delayed}` }))];
  keyed(choice, items, (item) => item.key, (item) => h("option", { value: item.key }), (option, item) => setText(option, item.text));
  if (choice.value !== view.purgatory) choice.value = view.purgatory;
}

// Returns the levels of these purgatories, with the total number of operations in each bucket.
function levelsOf(purgatories) {
  const levels = new Map();
  for (const purgatory of purgatories) {
    for (const wheel of purgatory.wheel) {
      const level = levels.get(wheel.level) ?? { ...wheel, buckets: new Map(), count: 0, current_time_ms: 0 };
      levels.set(wheel.level, level);
      level.current_time_ms = Math.max(level.current_time_ms, wheel.current_time_ms);
      for (const [index, count] of Object.entries(wheel.buckets)) {
        level.buckets.set(Number(index), (level.buckets.get(Number(index)) ?? 0) + count);
        level.count += count;
      }
    }
  }
  const shown = [...levels.values()].sort((one, other) => one.level - other.level);
  const width = Math.min(WIDEST_RING, (OUTSIDE - CENTRE) / Math.max(shown.length, 1));
  shown.forEach((level, place) => {
    level.inner = CENTRE + place * width + 2;
    level.outer = CENTRE + (place + 1) * width - 2;
  });
  return shown;
}

// Returns the key of a level's drawing, which depends on the number of levels: it sets the width of rings.
function ringOf(level) {
  return `${level.level}/${level.inner.toFixed(1)}/${level.outer.toFixed(1)}`;
}

function point(radius, turn) {
  return [radius * Math.sin(2 * Math.PI * turn), -radius * Math.cos(2 * Math.PI * turn)];
}

function sector(inner, outer, from, to) {
  const gap = 0.0022;
  const [a, b, c, d] = [point(inner, from + gap), point(outer, from + gap), point(outer, to - gap), point(inner, to - gap)];
  const text = (at) => at.map((value) => value.toFixed(2)).join(" ");
  return `M${text(a)}L${text(b)}A${outer} ${outer} 0 0 1 ${text(c)}L${text(d)}A${inner} ${inner} 0 0 0 ${text(a)}Z`;
}

function drawRings(rings, levels, context) {
  const { view } = context;
  const buckets = levels.flatMap((level) => Array.from({ length: level.size }, (_, index) => ({ level, index })));
  keyed(rings, buckets, (one) => `${ringOf(one.level)}/${one.index}`, ({ level, index }) => {
    const path = svg("path", { d: sector(level.inner, level.outer, index / level.size, (index + 1) / level.size) });
    path.append(svg("title"));
    path.addEventListener("click", () => toggleBucket(context, level.level, index));
    return path;
  }, (path, { level, index }) => {
    const count = level.buckets.get(index) ?? 0;
    const isSelected = view.bucket?.level === level.level && view.bucket.index === index;
    setAttribute(path, "class", `bucket fill-${count ? Math.min(1 + Math.floor(Math.log2(count) / 2), 5) : 0}${isSelected ? " selected" : ""}`);
    setText(path.firstChild, `level ${level.level}, bucket ${index}: ${plural(count, "operation")}`);
  });
}

// Selects a bucket, or clears the selection if it is selected.
function toggleBucket(context, level, index) {
  const { bucket } = context.view;
  context.selectBucket(bucket?.level === level && bucket.index === index ? null : { level, index });
}

function moveByKey(event, context) {
  const steps = { ArrowRight: [0, 1], ArrowDown: [0, 1], ArrowLeft: [0, -1], ArrowUp: [0, -1], PageUp: [1, 0], PageDown: [-1, 0] };
  const step = steps[event.key];
  const { levels } = context;
  if (event.key === "Escape") context.selectBucket(null);
  else if (!step || !levels.length) return;
  else {
    event.preventDefault();
    const at = context.view.bucket ?? { level: levels[0].level, index: step[1] > 0 ? -1 : 0 };
    const level = levels.find((one) => one.level === at.level + step[0]) ?? levels.find((one) => one.level === at.level) ?? levels[0];
    context.selectBucket({ level: level.level, index: (at.index + step[1] + level.size) % level.size });
  }
  event.stopPropagation();
}

function drawDots(dots, operations, levels, context) {
  const { view } = context;
  const ranks = new Map();
  const items = [];
  for (const one of operations) {
    const level = levels.find((each) => each.level === one.level);
    if (!level) continue;
    const place = `${one.level}/${one.bucket}`;
    const rank = ranks.get(place) ?? 0;
    ranks.set(place, rank + 1);
    if (rank < DOTS_IN_BUCKET || one.key === view.operation) items.push({ one, level, rank: Math.min(rank, DOTS_IN_BUCKET - 1) });
  }
  keyed(dots, items, (item) => item.one.key, ({ one }) => {
    const dot = svg("circle", { class: "dot born", r: 4.2 }, svg("title", {}, `${one.purgatory} ${one.keys.join(", ")}`));
    dot.addEventListener("click", () => context.selectOperation(one.key));
    dot.style.fill = colour(one.purgatory);
    return dot;
  }, (dot, { one, level, rank }) => {
    const [x, y] = placeOf(level, one.bucket, rank);
    // A transform for each dot would cost a compositing layer each.
    dot.style.cx = `${x.toFixed(1)}px`;
    dot.style.cy = `${y.toFixed(1)}px`;
    setAttribute(dot, "class", `dot${one.key === view.operation ? " selected" : ""}${view.bucket || view.operation ? fade(one, view) : ""}`);
  }, (dot) => {
    setAttribute(dot, "class", "dot over");
    setTimeout(() => dot.remove(), 450);
  });
}

function fade(one, view) {
  if (view.operation) return one.key === view.operation ? "" : " faint";
  return one.level === view.bucket.level && one.bucket === view.bucket.index ? "" : " faint";
}

// Returns where the n-th operation of a bucket is drawn: three rows of three.
function placeOf(level, bucket, rank) {
  const depth = (level.outer - level.inner) / 4;
  const radius = level.outer - depth * (1 + Math.floor(rank / 3));
  const turn = (bucket + 0.5 + [0, -0.28, 0.28][rank % 3]) / level.size;
  return point(radius, turn);
}

function drawLevels(list, levels, context) {
  keyed(list, [...levels].reverse(), (level) => level.level, () => h("li", {}, h("b"), h("span"), h("span", { class: "count" })), (item, level) => {
    const turn = level.tick_ms * level.size;
    setText(item.children[0], `Level ${level.level}`);
    setText(item.children[1], `${level.size} buckets of ${duration(level.tick_ms)}, ${duration(turn)} a turn`);
    setText(item.children[2], number(level.count));
    setAttribute(item, "class", context.view.bucket?.level === level.level ? "selected" : "");
  });
}

function drawHands(hands, levels) {
  keyed(hands, levels, ringOf, (level) => svg("g", {},
    svg("circle", { class: "blur", r: (level.inner + level.outer) / 2, "stroke-width": level.outer - level.inner }),
    svg("line", { y1: -level.inner, y2: -level.outer })));
}

function turnHands(hands, levels, nowMs, speed) {
  levels.forEach((level, place) => {
    const [blur, line] = hands.children[place]?.children ?? [];
    if (!line) return;
    const turnMs = level.tick_ms * level.size;
    const isBlurred = speed > 0 && turnMs / speed < BLUR_MS;
    setAttribute(blur, "visibility", isBlurred ? null : "hidden");
    setAttribute(line, "visibility", isBlurred ? "hidden" : null);
    if (!isBlurred) setAttribute(line, "transform", `rotate(${((nowMs % turnMs) / turnMs * 360).toFixed(1)})`);
  });
}

// Returns a text on the selection: where an operation waits, and where it goes from there.
function wordsOf(context, nowMs) {
  const { view, world, levels } = context;
  if (view.operation) {
    const one = world.parked.find((each) => each.key === view.operation);
    const level = levels.find((each) => each.level === one?.level);
    if (!one) return "The operation has ended.";
    if (!level) return "It is due and waits for its turn.";
    const fallsMs = one.due_ms - (one.due_ms % level.tick_ms);
    const where = `${one.purgatory} of ${one.client_id ?? `broker ${one.broker}`} is in level ${one.level}, bucket ${one.bucket}. `;
    const left = one.due_ms - nowMs;
    const ends = left > 0 ? `expires in ${duration(left)} unless it is completed before.` : "is due.";
    if (one.level === 1 || fallsMs === one.due_ms) return `${where}It runs from this bucket: it ${ends}`;
    return `${where}The bucket opens in ${duration(Math.max(fallsMs - nowMs, 0))}: what is left then is demoted to a finer level. It ${ends}`;
  }
  if (view.bucket) {
    const level = levels.find((each) => each.level === view.bucket.level);
    if (!level) return "";
    const turns = Math.floor(nowMs / level.tick_ms);
    const start = (turns + ((view.bucket.index - turns) % level.size + level.size) % level.size) * level.tick_ms;
    const count = level.buckets.get(view.bucket.index) ?? 0;
    return `Bucket ${view.bucket.index} of level ${level.level} has ${plural(count, "operation")} with deadlines `
      + `${duration(start - nowMs)} to ${duration(start + level.tick_ms - nowMs)} from now.`;
  }
  return "An operation waits in the bucket of its deadline. When the hand reaches a bucket, it falls to a finer level, or it expires.";
}
