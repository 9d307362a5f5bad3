// Driver that calls the assignors of one Node library.
//
// Usage: node driver.js DIRECTORY PACKAGE, where DIRECTORY/node_modules contains the package
//
// It writes a line when it is ready. Then it reads one JSON line per group,
// {"assignor": NAME, "group": GROUP_DOCUMENT}, and writes one line: an object with the partitions
// per member, or {"failed": EXCEPTION, "reason": TEXT} for an exception of the library.
// A worker calls the library, so that the process ends with its input even during a call.
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const readline = require("node:readline");
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");

const GRACE_MILLISECONDS = 1000;

function main(directory, library) {
  const worker = new Worker(__filename, { workerData: { directory, library } });
  let unanswered = 0;
  let isEnded = false;
  worker.on("message", (line) => {
    process.stdout.write(line + "\n");
    unanswered -= line === "ready" ? 0 : 1;
    if (isEnded && unanswered === 0) process.exit(0);
  });
  worker.on("error", (error) => {
    console.error(String(error));
    process.exit(1);
  });
  const input = readline.createInterface({ input: process.stdin });
  input.on("line", (line) => {
    unanswered += 1;
    worker.postMessage(line);
  });
  input.on("close", () => {
    isEnded = true;
    if (unanswered === 0) process.exit(0);
    setTimeout(() => process.exit(0), GRACE_MILLISECONDS);
  });
}

async function work({ directory, library }) {
  const load = { kafkajs: kafkajs, "@platformatic/kafka": platformatic }[library];
  const assign = await load(path.join(directory, "node_modules", library));
  parentPort.on("message", async (line) => {
    const { assignor, group } = JSON.parse(line);
    let answer;
    try {
      answer = await assign(assignor, group);
    } catch (error) {
      answer = { failed: error.name, reason: error.message };
    }
    parentPort.postMessage(JSON.stringify(answer));
  });
  parentPort.postMessage("ready");
}

/** Return the number of partitions of a topic of the group document. */
function partitionCount(topics, name) {
  const topic = topics[name];
  return typeof topic === "object" ? topic.partitions : topic;
}

/** Return the assigner of kafkajs. The leader, the first member, passes only its own topics. */
async function kafkajs(directory) {
  const { PartitionAssigners, AssignerProtocol } = require(directory);
  return async (_name, { topics, members }) => {
    const cluster = {
      findTopicPartitionMetadata: (name) =>
        Array.from({ length: partitionCount(topics, name) ?? 0 }, (_, partitionId) => ({ partitionId })),
    };
    const assigner = PartitionAssigners.roundRobin({ cluster });
    const joined = members.map((member) => ({
      memberId: member.id,
      memberMetadata: assigner.protocol({ topics: member.topics }).metadata,
    }));
    const assigned = await assigner.assign({ members: joined, topics: members[0].topics });
    const lists = Object.fromEntries(members.map((member) => [member.id, []]));
    for (const { memberId, memberAssignment } of assigned) {
      const { assignment } = AssignerProtocol.MemberAssignment.decode(memberAssignment);
      lists[memberId] = pairs(Object.entries(assignment));
    }
    return lists;
  };
}

/** Return the assigners of @platformatic/kafka. The leader, the first member, passes its topics. */
async function platformatic(directory) {
  const files = path.join(directory, "dist", "clients", "consumer");
  const assigners = await import(pathToFileURL(path.join(files, "partitions-assigners.js")));
  let protocol = null; // Releases before 2.12 encode and decode in private methods.
  try {
    protocol = await import(pathToFileURL(path.join(files, "consumer-protocol.js")));
  } catch (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  }
  const functions = {
    roundrobin: assigners.roundRobinAssigner,
    "cooperative-sticky": assigners.cooperativeStickyAssigner,
  };
  return async (name, { topics, members }) => {
    const isCooperative = name === "cooperative-sticky";
    const joined = new Map(members.map((member) => [member.id, received(protocol, member, isCooperative)]));
    const known = new Map(
      Object.keys(topics).map((topic) => [topic, { partitionsCount: partitionCount(topics, topic) }])
    );
    const leader = members[0];
    if (members.length === 1) {
      // The client does not call its assigner.
      const all = leader.topics.map((topic) => [topic, [...Array(known.get(topic).partitionsCount).keys()]]);
      return { [leader.id]: pairs(all) };
    }
    const lists = {};
    const assigned = functions[name](leader.id, joined, new Set(leader.topics), { topics: known });
    for (const { memberId, assignments } of assigned) {
      lists[memberId] = pairs([...assignments.values()].map((one) => [one.topic, one.partitions]));
    }
    return lists;
  };
}

/** Return the subscription of a member after encoding and decoding. */
function received(protocol, member, isCooperative) {
  const owned = new Map();
  for (const [topic, partition] of isCooperative ? member.owned ?? [] : []) {
    if (member.topics.includes(topic)) owned.set(topic, [...(owned.get(topic) ?? []), partition]);
  }
  const subscription = {
    version: isCooperative ? 3 : 1,
    topics: member.topics,
    ownedPartitions: [...owned].map(([topic, partitions]) => ({ topic, partitions })),
    generationId: owned.size > 0 ? member.generation ?? -1 : -1,
    rackId: isCooperative ? member.rack : null,
  };
  const decoded = protocol
    ? protocol.decodeConsumerProtocolSubscription(protocol.encodeConsumerProtocolSubscription(subscription))
    : subscription;
  return { memberId: member.id, ...decoded };
}

function pairs(topics) {
  return topics.flatMap(([topic, partitions]) => partitions.map((partition) => [topic, partition]));
}

if (isMainThread) main(process.argv[2], process.argv[3]);
else work(workerData);
