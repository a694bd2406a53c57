// Jobs through BullMQ and Redis.
//
//   bullmq.js work PORT REPLY_BYTES | submit PORT SECONDS WINDOW REQUEST_BYTES
//
// A worker does 64 jobs at once, results come back with the queue's events. Redis writes nothing to disk. Left out,
// against Muster: limits and a store; leases and retries are there.
const { Queue, QueueEvents, Worker } = require("bullmq");
const keep = require("./window.js");

const [verb, port, ...numbers] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };

function work(bytes) {
  const reply = "r".repeat(bytes);
  new Worker("jobs", async () => reply, { connection, concurrency: 64 });
}

async function submit(seconds, window, bytes) {
  const request = "q".repeat(bytes);
  const queue = new Queue("jobs", { connection, defaultJobOptions: { removeOnComplete: 10_000 } });
  const events = new QueueEvents("jobs", { connection });
  for (const emitter of [queue, events]) emitter.setMaxListeners(0); // one a job
  await events.waitUntilReady();
  await new Promise((wake) => setTimeout(wake, 500)); // what ends before its first read is lost
  const ask = async () => (await queue.add("job", request)).waitUntilFinished(events);
  await ask();
  await keep(ask, seconds, window);
}

verb === "work" ? work(Number(numbers[0])) : submit(...numbers.map(Number));
