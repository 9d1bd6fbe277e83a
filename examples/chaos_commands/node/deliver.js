// Sends orders and delivers each at least once, as a group would; exit code 1 if one is missing in the end.
const { Kafka, Partitioners } = require("kafkajs");

const ORDERS = 60;
const LIMIT_MS = 120_000;

async function main() {
  const kafka = new Kafka({
    brokers: process.env.KAFKA_BOOTSTRAP_SERVERS.split(","),
    retry: { retries: 30, maxRetryTime: 2_000 },
  });
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, idempotent: true });
  await producer.connect();
  for (let order = 0; order < ORDERS; order++) {
    await producer.send({ topic: "orders", messages: [{ value: String(order) }] });
  }
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: "shop", sessionTimeout: 6_000, heartbeatInterval: 1_000 });
  await consumer.connect();
  await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
  const delivered = new Set();
  let again = 0;
  const done = new Promise((resolve) => {
    setTimeout(resolve, LIMIT_MS);
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ topic, partition, message }) => {
        await new Promise((next) => setTimeout(next, 400));
        again += delivered.has(String(message.value)) ? 1 : 0;
        delivered.add(String(message.value));
        await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }]);
        if (delivered.size === ORDERS) resolve();
      },
    });
  });
  await done;
  console.log(`node: ${delivered.size} of ${ORDERS} orders delivered, ${again} of them again`);
  process.exit(delivered.size === ORDERS ? 0 : 1);
}

main().catch((error) => {
  console.error(error);
  process.exit(2);
});
