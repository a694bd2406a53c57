// Jobs through a service of nats.js on nats-server: NATS's own way, without what Muster adds to it.
//
//   nats_service.js work PORT REPLY_BYTES | submit PORT SECONDS WINDOW REQUEST_BYTES
//
// Left out, against Muster: leases, retries, limits, a store; a request that is lost is lost.
const { connect } = require("nats");
const keep = require("./window.js");

const [verb, port, ...numbers] = process.argv.slice(2);
const subject = "bench.job";

async function work(bytes) {
  const client = await connect({ port: Number(port) });
  const service = await client.services.add({ name: "bench", version: "1.0.0" });
  const reply = new Uint8Array(bytes);
  service.addEndpoint("job", { subject, handler: (error, request) => request.respond(reply) });
}

async function submit(seconds, window, bytes) {
  const client = await connect({ port: Number(port) });
  const request = new Uint8Array(bytes);
  const ask = () => client.request(subject, request, { timeout: 10_000 });
  while (await ask().then(() => false, () => true)) await new Promise((wake) => setTimeout(wake, 50)); // no worker yet
  await keep(ask, seconds, window);
}

verb === "work" ? work(Number(numbers[0])) : submit(...numbers.map(Number));
