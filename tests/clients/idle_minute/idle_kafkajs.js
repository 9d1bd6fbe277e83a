// A program of kafkajs: 20 records through a group, then an idle minute.
const { Kafka, Partitioners, logLevel } = require("kafkajs");

async function main() {
  const brokers = process.env.KAFKA_BOOTSTRAP_SERVERS.split(",");
  const kafka = new Kafka({ brokers, logLevel: logLevel.ERROR });
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  for (let number = 0; number < 20; number++) {
    await producer.send({ topic: "orders", acks: -1, messages: [{ value: String(number) }] });
  }
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: "shop" });
  await consumer.connect();
  await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
  await new Promise((done) => {
    let count = 0;
    consumer.run({ eachMessage: async () => { if (++count === 20) done(); } });
  });
  const start = performance.now();
  await new Promise((done) => setTimeout(done, 60_000));
  console.log("20 records,", Math.round((performance.now() - start) / 1000), "s idle");
  await consumer.disconnect();
}

main();
