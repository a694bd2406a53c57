// `window` jobs in flight for so many seconds: each is asked for when the one before it is back. Prints jobs a second.
module.exports = async (ask, seconds, window) => {
  const begun = process.hrtime.bigint();
  const passed = () => Number(process.hrtime.bigint() - begun) / 1e9;
  let done = 0;
  const flying = Array.from({ length: window }, async () => {
    for (; passed() < seconds; ++done) await ask();
  });
  await Promise.all(flying);
  console.log(JSON.stringify({ per_second: done / passed() }));
  process.exit(0);
};
