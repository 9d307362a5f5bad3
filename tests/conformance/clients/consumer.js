// Consumer of kafkajs, which runs until its standard input ends.
//
// Usage: node consumer.js BOOTSTRAP GROUP ASSIGNOR TOPIC,TOPIC, where ASSIGNOR has no effect
const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, groupId, , topics] = process.argv.slice(2);
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId });

async function run() {
  await consumer.connect();
  await consumer.subscribe({ topics: topics.split(","), fromBeginning: true });
  await consumer.run({ eachMessage: async () => {} });
}

process.stdin.on("end", async () => {
  await consumer.disconnect();
  process.exit(0);
});
process.stdin.resume();
run().catch((error) => {
  console.error(error);
  process.exit(1);
});
