// Groups of all types and transactions as known to their coordinators, and idempotent producers as known to logs.

import { empty, h, heads, keyed, panel, setAttribute, setText } from "page/dom.js";
import { duration, number, plural } from "page/words.js";

const MOST_CHIPS = 24;
const QUIET = new Set(["Stable", "Empty", "Dead"]);

export function makeGroups() {
  const cards = h("div", { class: "groups" });
  const nothing = empty("No groups so far.");
  const { element, count } = panel("Groups", null, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Groups" }, cards, nothing));
  return {
    element,
    draw(world) {
      const groups = world.all("group");
      nothing.hidden = groups.length > 0;
      setText(count, groups.length || "");
      keyed(cards, groups, (one) => one.id, makeGroup, drawGroup);
    },
  };
}

function makeGroup(one) {
  return h("article", { class: "group", "aria-label": `Group ${one.id}` },
    h("header", {}, h("b", {}, one.id), h("span", { class: "tag" }, one.type), h("span", { class: "state" }), h("span", { class: "lag" })),
    h("ul", { class: "members" }), h("ul", { class: "shares" }));
}

function drawGroup(card, one) {
  const [head, members, shares] = card.children;
  const [, , state, lag] = head.children;
  setText(state, one.state);
  setAttribute(state, "class", `state ${QUIET.has(one.state) ? "running" : "paused"}`);
  setText(lag, `lag ${number(one.lag)} · coordinator ${one.coordinator}${one.assignor ? ` · ${one.assignor}` : ""}`);
  const lags = new Map(one.offsets.map((each) => [`${each.topic}-${each.partition}`, each]));
  keyed(members, one.members, (each) => each.id, (each) => h("li", {}, h("span", { title: each.id }, each.client_id), h("span", { class: "chips" })), (item, each) => {
    const names = each.assignment.map((partition) => `${partition.topic}-${partition.partition}`);
    const shown = names.slice(0, MOST_CHIPS).map((name) => ({ name, text: withLag(name, lags.get(name)) }));
    if (names.length > MOST_CHIPS) shown.push({ name: "more", text: `${names.length - MOST_CHIPS} more` });
    if (!names.length) shown.push({ name: "none", text: "no partition" });
    keyed(item.lastChild, shown, (chip) => chip.name, () => h("span", { class: "tag" }), (chip, facts) => setText(chip, facts.text));
  });
  keyed(shares, one.share_partitions.filter((each) => each.in_flight.length), (each) => `${each.topic}/${each.partition}`,
    (each) => h("li", {}, h("span", {}, `${each.topic}-${each.partition}`), h("div", { class: "flight" })), (item, each) => drawShare(item, each));
}

function withLag(name, offset) {
  return offset?.lag ? `${name} −${number(offset.lag)}` : name;
}

// Draws the records in flight of a share partition: one block for each run of records with the same state.
function drawShare(item, partition) {
  keyed(item.lastChild, partition.in_flight.slice(0, MOST_CHIPS), (each) => each.first_offset, () => h("span"), (block, each) => {
    const range = each.first_offset === each.last_offset ? each.first_offset : `${each.first_offset}–${each.last_offset}`;
    const lock = each.lock_left_ms === null ? "" : `, locked for ${duration(each.lock_left_ms)}`;
    setText(block, `${range} ${each.state}${each.delivery_count > 1 ? ` ×${each.delivery_count}` : ""}${lock}`);
    setAttribute(block, "class", `tag ${each.state.toLowerCase()}`);
    setAttribute(block, "title", each.member ? `acquired by ${each.member}` : "");
  });
}

export function makeTransactions() {
  const rows = h("tbody");
  const producers = h("tbody");
  const table = h("table", { "aria-label": "Transactions" }, h("thead", {}, h("tr", {}, heads("Transactional id", "State", "Age*", "Partitions"))), rows);
  const others = h("table", { "aria-label": "Idempotent producers" }, h("thead", {}, h("tr", {}, heads("Producer", "Partition", "Last sequence*", "Open from*"))), producers);
  const nothing = empty("No transactions and no idempotent producers so far.");
  const { element, count } = panel("Transactions and producers", null, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Transactions and producers" }, table, others, nothing));
  return {
    element,
    draw(world) {
      const [transactions, idempotent] = [world.all("transaction"), world.all("producer")];
      setText(count, transactions.length ? `${number(transactions.filter((one) => one.since_ms !== null).length)} open` : "");
      table.hidden = !transactions.length;
      others.hidden = !idempotent.length;
      nothing.hidden = transactions.length + idempotent.length > 0;
      keyed(rows, transactions, (one) => one.transactional_id, (one) => h("tr", {}, h("td", {}, h("b", {}, one.transactional_id), h("small", {}, "")), h("td", {}, h("span", { class: "state" })), h("td", { class: "number" }), h("td", { class: "keys" })), (row, one) => {
        row.transaction = one;
        setText(row.children[0].lastChild, `producer ${one.producer_id}, epoch ${one.producer_epoch} · coordinator ${one.coordinator}`);
        setText(row.children[1].firstChild, one.pending_state ? `${one.state} → ${one.pending_state}` : one.state);
        setAttribute(row.children[1].firstChild, "class", `state ${one.since_ms === null ? "running" : "paused"}`);
        setText(row.children[3], one.partitions.map((each) => `${each.topic}-${each.partition}`).join(", ") || "–");
      });
      keyed(producers, idempotent, (one) => `${one.topic}/${one.partition}/${one.producer_id}`, () => h("tr", {}, h("td"), h("td"), h("td", { class: "number" }), h("td", { class: "number" })), (row, one) => {
        setText(row.children[0], `${one.producer_id}, epoch ${one.producer_epoch}`);
        setText(row.children[1], `${one.topic}-${one.partition}`);
        setText(row.children[2], number(one.last_sequence < 0 ? null : one.last_sequence));
        setText(row.children[3], one.transaction_start_offset === null ? "–" : `${one.transaction_start_offset}${one.is_hanging ? " (hangs)" : ""}`);
        setAttribute(row, "data-bad", one.is_hanging);
      });
    },
    tick(nowMs) {
      for (const row of rows.children) {
        const since = row.transaction.since_ms;
        setText(row.children[2], since === null ? "–" : duration(Math.max(nowMs - since, 0)));
      }
    },
  };
}
