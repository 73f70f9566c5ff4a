// Asks the search of the site, with the script that runs it in a browser.
//
// usage: node search.js WORKER INDEX < QUERIES (JSON, a list) > RESULTS (JSON, pages by query, best first)
const fs = require("fs");
const vm = require("vm");

const [worker, index] = process.argv.slice(2).map((file) => fs.readFileSync(file, "utf8"));
let receive, answered;
const browser = {
  addEventListener: (_, listener) => (receive = listener),
  postMessage: (message) => answered(message),
  console: { ...console, log: console.error },
};
browser.self = browser;
vm.runInNewContext(worker, browser);

const ask = (type, data) =>
  new Promise((resolve) => {
    answered = resolve;
    receive({ data: { type, data } });
  });

(async () => {
  await ask(0, { ...JSON.parse(index), options: { suggest: false } });
  const found = {};
  for (const query of JSON.parse(fs.readFileSync(0, "utf8"))) {
    const { data } = await ask(2, query);
    found[query] = data.items.map((sections) => sections[0].location.split("#")[0]);
  }
  process.stdout.write(JSON.stringify(found));
})();
