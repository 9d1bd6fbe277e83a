// The events between two worlds as texts, for the event log and the steps of a recorded run.

import { apiName, plural } from "page/words.js";

// Returns the events; each has a subject, such as "broker/1", by which events can be filtered.
export function eventsBetween(before, after) {
  const events = [];
  const add = (about, kind, text) => events.push({ atMs: after.atMs, about, kind, text });
  for (const [name, part] of after.parts) {
    const old = before.parts.get(name);
    if (old !== part) describe(name, old, part, add);
  }
  for (const [name, part] of before.parts) if (!after.parts.has(name)) describeEnd(name, part, add);
  return events;
}

function describe(name, old, now, add) {
  const kind = name.split("/")[0];
  if (kind === "broker") broker(name, old, now, add);
  else if (kind === "partition") partition(name, old, now, add);
  else if (kind === "group") group(name, old, now, add);
  else if (kind === "transaction") {
    if (old?.state !== now.state) add(name, "transaction", `transaction ${now.transactional_id} is ${now.state}`);
  } else if (kind === "link") {
    const what = now.drop ? "is cut" : now.delay_ms ? `takes ${now.delay_ms} ms` : "is restored";
    add(`broker/${now.from}`, now.drop ? "bad" : "fault", `the link from ${node(now.from)} to ${node(now.to)} ${what}`);
  } else if (kind === "fault" && !old) add(name, "fault", `a fault is injected into ${apiName(now.api)} requests`);
  else if (kind === "fault" && now.hits > old.hits) add(name, "fault", `the fault has hit ${plural(now.hits, `${apiName(now.api)} request`)}`);
}

function describeEnd(name, part, add) {
  const kind = name.split("/")[0];
  if (kind === "link") add(`broker/${part.from}`, "good", `the link from ${node(part.from)} to ${node(part.to)} is restored`);
  else if (kind === "fault") add(name, "good", `the fault in ${apiName(part.api)} requests ends`);
  else if (kind === "group") add(name, "group", `group ${part.id} is deleted`);
}

function broker(name, old, now, add) {
  if (!old) return;
  if (old.state !== now.state) {
    add(name, now.state === "running" ? "good" : "bad", `broker ${now.id} is ${now.state}`);
  }
  if (old.fenced !== now.fenced) {
    add(name, now.fenced ? "bad" : "good", `broker ${now.id} is ${now.fenced ? "fenced" : "unfenced"}`);
  }
  if (old.clients_cut_off !== now.clients_cut_off) {
    const what = now.clients_cut_off ? "is cut off from clients" : "can be reached by clients again";
    add(name, now.clients_cut_off ? "bad" : "good", `broker ${now.id} ${what}`);
  }
}

function partition(name, old, now, add) {
  if (!old) return;
  const title = `${now.topic}-${now.partition}`;
  if (old.leader !== now.leader) {
    const text = now.leader < 0 ? `${title} has no leader` : `broker ${now.leader} leads ${title}`;
    add(name, now.leader < 0 ? "bad" : "leader", text);
  }
  if (old.isr.length !== now.isr.length || old.isr.some((id) => !now.isr.includes(id))) {
    const smaller = now.isr.length < old.isr.length;
    add(name, smaller ? "bad" : "good", `ISR of ${title} ${smaller ? "shrinks" : "grows"} to ${now.isr.join(", ")}`);
  }
}

function group(name, old, now, add) {
  if (!old) {
    add(name, "group", `${now.type} group ${now.id} is new, and ${now.state}`);
    return;
  }
  if (old.state !== now.state) add(name, "group", `group ${now.id} is ${now.state}`);
  const [left, joined] = [difference(old.members, now.members), difference(now.members, old.members)];
  for (const member of joined) add(name, "good", `${member.client_id} joins group ${now.id}`);
  for (const member of left) add(name, "bad", `${member.client_id} leaves group ${now.id}`);
  for (const member of now.members) {
    const before = old.members.find((one) => one.id === member.id);
    if (before && JSON.stringify(before.assignment) !== JSON.stringify(member.assignment)) {
      const names = member.assignment.map((one) => `${one.topic}-${one.partition}`);
      add(name, "group", `${member.client_id} in ${now.id} has ${names.join(", ") || "no partition"}`);
    }
  }
}

function difference(some, others) {
  const ids = new Set(others.map((one) => one.id));
  return some.filter((one) => !ids.has(one.id));
}

export function node(id) {
  return id < 0 ? "the controller" : `broker ${id}`;
}
