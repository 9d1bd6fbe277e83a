import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import kafkajs from "kafkajs";
import { startKafka } from "./broker-sim.js";

let kafka;
before(async () => (kafka = await startKafka()));
beforeEach(() => kafka.reset());
after(() => kafka.stop());

async function producer(retries) {
  const client = new kafkajs.Kafka({ brokers: kafka.brokers, logLevel: kafkajs.logLevel.NOTHING, retry: { retries } });
  const made = client.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
  await made.connect();
  return made;
}

test("an order waits for every replica", async () => {
  await kafka.request("POST", "/topics", { name: "orders", replication_factor: 3 });
  const { leader } = await kafka.request("GET", "/topics/orders/partitions/0");
  const follower = `/brokers/${(leader % 3) + 1}`;
  const orders = await producer();
  await orders.send({ topic: "orders", messages: [{ value: "two pears" }] });
  await kafka.request("POST", `${follower}/pause`);
  const sent = orders.send({ topic: "orders", messages: [{ value: "three apples" }] });
  assert.equal(await Promise.race([sent.then(() => "sent"), setTimeout(500, "waits")]), "waits");
  await kafka.request("POST", `${follower}/resume`);
  assert.equal((await sent)[0].baseOffset, "1");
  await orders.disconnect();
});

test("a refused order is an error", async () => {
  await kafka.request("POST", "/topics", { name: "orders" });
  await kafka.request("POST", "/inject", { api: "Produce", error: "MESSAGE_TOO_LARGE", count: 1 });
  const orders = await producer(0);
  await assert.rejects(orders.send({ topic: "orders", messages: [{ value: "x" }] }), { type: "MESSAGE_TOO_LARGE" });
  await orders.disconnect();
});
