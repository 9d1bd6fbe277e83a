// Each connection of kafkajs sets a timer of 1 ms for ever, also while nothing happens.
//
//   npm install kafkajs@2.2.4
//   node idle_connections_poll.js 127.0.0.1:9092,...
//
// `RequestQueue.scheduleCheckPendingRequests` sets a timer for the end of a throttle. Without a throttle its delay is
// `-1 - Date.now()`, which Node replaces by 1 ms, and that timer sets the next one. See kafkajs's issues 1556 and 1751:
// Node 24 also prints a TimeoutNegativeWarning. Chaos found it: idle virtual minutes took seconds of processor time.
// Seen on three nodes of Kafka 4.4.0 with Node 20: 3 700 timers a second and 4 % of a processor; with that delay mended
// no timer, and 0.5 %.
const { Kafka, Partitioners, logLevel } = require("kafkajs");

const IDLE_S = 10;
const LIMIT_A_SECOND = 100;

async function main(servers) {
  const kafka = new Kafka({ brokers: servers.split(","), logLevel: logLevel.ERROR });
  const topic = `idle-${process.pid}-${Date.now()}`;
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  await producer.send({ topic, messages: [{ value: "a record" }] });
  const consumer = kafka.consumer({ groupId: topic });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise((done) => consumer.run({ eachMessage: async () => done() }));

  let timers = 0;
  const real = global.setTimeout;
  global.setTimeout = (call, delay, ...rest) => {
    timers += delay < 1 ? 1 : 0;
    return real(call, delay, ...rest);
  };
  const before = process.cpuUsage();
  await new Promise((done) => real(done, IDLE_S * 1_000));
  const { user, system } = process.cpuUsage(before);
  global.setTimeout = real;
  const percent = ((user + system) / 10_000 / IDLE_S).toFixed(1);
  const rate = Math.round(timers / IDLE_S);
  const text = `an idle producer and consumer set ${rate} timers a second and use ${percent} % of a processor`;
  console.log(rate > LIMIT_A_SECOND ? `WRONG: ${text}` : `it is right: ${text}`);
  await consumer.disconnect();
  await producer.disconnect();
}

main(...process.argv.slice(2));
