// Prints the CPU seconds per call of an assignor of the Node driver, without JSON.
//
// Usage: node direct_calls.js DRIVER DIRECTORY PACKAGE REQUEST_FILE CALLS
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");

async function main(driver, directory, library, requestFile, calls) {
  // The last statement of the driver starts it; its functions come before.
  const [functions] = fs.readFileSync(driver, "utf8").split("\nif (isMainThread)");
  const loaded = new Module(driver);
  loaded._compile(`${functions}\nmodule.exports = { kafkajs, "@platformatic/kafka": platformatic };`, driver);
  const assign = await loaded.exports[library](path.join(directory, "node_modules", library));
  const { assignor, group } = JSON.parse(fs.readFileSync(requestFile, "utf8"));
  let start;
  for (let i = -calls; i < calls; i++) {
    // The first half warms up the compiler.
    if (i === 0) start = process.cpuUsage();
    await assign(assignor, group);
  }
  const { user, system } = process.cpuUsage(start);
  console.log((user + system) / 1e6 / calls);
}

const [driver, directory, library, requestFile, calls] = process.argv.slice(2);
main(driver, directory, library, requestFile, Number(calls));
