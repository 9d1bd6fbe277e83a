// `consumer.disconnect()` can take a whole processor for ever, if a broker stops or starts while a record is processed.
//
//   npm install kafkajs@2.2.4
//   node disconnect_while_brokers_change.js 127.0.0.1:9092,... "broker-sim ctl stop {}"
//   node disconnect_while_brokers_change.js 127.0.0.1:19092,... "docker compose stop kafka-{}"
//
// Needs three brokers and a command that stops the broker whose id replaces {}. `FetchManager.start` makes new fetchers
// when the brokers change, after the old ones have handed over their records. If `disconnect` is called meanwhile, the
// new ones ask a stopped runner for records, which answers at once and without any, again and again: no timer, signal
// handler or callback of the process runs any more. Chaos with two correct workers found it at seed 10040, which deploys
// a worker after a broker has stopped.
const { execSync } = require("node:child_process");
const { Worker, isMainThread, parentPort } = require("node:worker_threads");
const { Kafka, Partitioners, logLevel } = require("kafkajs");

const LIMIT_S = 10;

async function consume(servers, stop) {
  let onStopping;
  const stopping = new Promise((done) => (onStopping = done));
  const logCreator = () => ({ log }) => log.message === "Stopping fetchers..." && onStopping();
  const kafka = new Kafka({ brokers: servers.split(","), logLevel: logLevel.DEBUG, logCreator });
  const topic = `orders-${process.pid}-${Date.now()}`;
  const admin = kafka.admin();
  await admin.connect();
  const [first, second, third] = (await admin.describeCluster()).brokers.map(({ nodeId }) => nodeId);
  const replicaAssignment = [first, second].map((id, partition) => ({ partition, replicas: [id] }));
  await admin.createTopics({ topics: [{ topic, replicaAssignment }] });
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  await producer.send({ topic, messages: [{ value: "a record", partition: 0 }] });
  await producer.disconnect();

  const consumer = kafka.consumer({ groupId: topic, maxWaitTimeInMs: 500, metadataMaxAge: 1_000 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  let finish;
  const processed = new Promise((done) => (finish = done));
  await new Promise((started) => consumer.run({ eachMessage: () => (started(), processed) }));
  execSync(stop.replaceAll("{}", third), { stdio: ["ignore", "ignore", "inherit"] });
  await stopping;
  const disconnected = consumer.disconnect();
  parentPort.postMessage("disconnects");
  finish();
  await disconnected;
  await admin.disconnect();
}

function main() {
  const worker = new Worker(__filename, { argv: process.argv.slice(2) });
  worker.on("message", () => {
    const before = process.cpuUsage();
    const limit = setTimeout(async () => {
      const { user, system } = process.cpuUsage(before);
      const percent = Math.round((user + system) / 10_000 / LIMIT_S);
      console.log(`WRONG: disconnect has not returned after ${LIMIT_S} s, and uses ${percent} % of a processor`);
      await worker.terminate();
    }, LIMIT_S * 1_000);
    worker.on("exit", () => clearTimeout(limit));
  });
  worker.on("exit", (code) => code === 0 && console.log("it is right: disconnect has returned"));
}

if (isMainThread) main();
else consume(...process.argv.slice(2));
