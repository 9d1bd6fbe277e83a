// Uses the page as somebody would: node playground_in_chromium.mjs ADDRESS BROWSER FOLDER_OF_PACKAGES PROFILE
//
// Prints a line for each claim, and ends with 1 at the first that does not hold.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

const [, , address, browser, packages, profile] = process.argv;
const { chromium } = createRequire(path.join(packages, "package.json"))("playwright-core");
const LONG_MS = 180_000;
const context = await chromium.launchPersistentContext(profile, {
  executablePath: browser, headless: true, args: ["--no-sandbox", "--disable-background-networking"], viewport: { width: 1400, height: 950 },
});
await context.grantPermissions(["clipboard-read", "clipboard-write"]);
const problems = [];
const open = async (fragment = "") => {
  const page = await context.newPage();
  page.setDefaultTimeout(LONG_MS);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => /^(data|blob):/.test(request.url()) || request.url().startsWith(address) || problems.push(`another host: ${request.url()}`));
  await page.goto(address + fragment);
  await page.waitForSelector(".cm-content, .figures, .queue");
  return page;
};
const button = (page, name) => page.getByRole("button", { name, exact: true });
const write = async (page, text) => {
  await page.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
};
const failed = (page) => page.waitForSelector(".result h3.bad");
const claims = {
  async "a search finds a seed that fails, makes it small and draws its course"(page) {
    await button(page, "Run").click();
    await page.waitForSelector(".course svg");
    assert.match(await page.textContent(".said"), /Seed 0 fails\. It was shrunk in \d+ runs .*the same way/);
    assert.match(await page.textContent(".report"), /commit_before_work:test_wrong: seed 0 fails\n {2}each order is delivered/);
    assert.equal(await page.locator(".faults li").count(), 1);
  },
  async "the failing run opens as a replay"(page) {
    const opened = page.context().waitForEvent("page");
    await button(page, "Play this run").click();
    const replay = await opened;
    replay.on("pageerror", (error) => problems.push(String(error)));
    await replay.waitForSelector(".bar-of-time");
    assert.match(await replay.title(), /commit_before_work:test_wrong, seed 0/);
    await replay.close();
  },
  async "its link opens the program with its seed, and fails again"(page) {
    await button(page, "Copy link").click();
    await page.waitForFunction(() => location.hash.startsWith("#chaos="));
    const other = await open(await page.evaluate(() => location.hash));
    await other.waitForFunction(() => document.querySelector(".said").textContent.includes("seed 0 fails"));
    assert.match(await other.textContent(".cm-content"), /Commits an order before it is delivered/);
    await button(other, "Run").click();
    await other.waitForSelector(".course svg");
    assert.equal(await other.textContent(".shrunk"), await page.textContent(".shrunk"));
    await other.close();
  },
  async "a wrong program is shown at its line"(page) {
    await write(page, "import pytest\n\n\n@pytest.mark.chaos(duration_s=1)\nasync def test_wrong(chaos):\n    return 1 / 0");
    await button(page, "Run").click();
    await failed(page);
    assert.match(await page.textContent(".result h3"), /division by zero/);
    assert.equal(await page.textContent(".wrong-line"), "    return 1 / 0");
    await write(page, "import pytest\ndef (");
    await button(page, "Run").click();
    await page.waitForFunction(() => document.querySelector(".result h3")?.textContent.includes("SyntaxError"));
    assert.equal(await page.textContent(".wrong-line"), "def (");
  },
  async "an endless loop is stopped, and the next search runs"(page) {
    await write(page, "import pytest\n\n\n@pytest.mark.chaos(duration_s=1)\nasync def test_loop(chaos):\n    while True:\n        pass");
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() => document.querySelector(".said").textContent === "seed 0 runs");
    await button(page, "Stop").click();
    await page.waitForFunction(() => document.querySelector(".said").textContent.startsWith("stopped"));
    await page.getByLabel("Example").selectOption("commit_before_work");
    await page.getByLabel("Test", { exact: true }).selectOption("test_mended");
    await page.getByLabel("Seeds", { exact: true }).fill("2");
    await button(page, "Run").click();
    await page.waitForFunction(() => document.querySelector(".said").textContent.startsWith("2 seeds passed"));
  },
  async "the wheel steps from bucket to bucket"(page) {
    await page.getByRole("tab", { name: "Timing wheel" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".wheel-tab .log li").length === 10);
    await button(page, "Step to the next bucket").click();
    await page.waitForFunction(() => document.querySelector(".wheel-tab .log li").textContent.includes("#1 runs"));
    assert.equal(await page.textContent(".wheel-tab .clock"), "8 ms");
    await page.getByLabel("Buckets of a wheel").fill("1");
    await button(page, "Start anew").click();
    await page.waitForFunction(() => document.querySelector(".refusal").textContent.includes("wheel_size >= 2"));
  },
  async "the cluster's clients and verbs work, and time moves as it is told"(page) {
    await page.getByRole("tab", { name: "Cluster" }).click();
    await page.waitForSelector(".cluster-tab .figures");
    await button(page, "1 s").click();
    await button(page, "Produce").click();
    await button(page, "30 s").click();
    await page.waitForFunction(() => document.querySelector(".said-list").textContent.includes("acknowledged"));
    await button(page, "Share").click();
    await button(page, "Produce").click();
    await button(page, "30 s").click();
    await page.waitForFunction(() => document.querySelector(".said-list").textContent.includes("accepts"));
    await button(page, "All verbs").click();
    await page.getByLabel("Search actions").fill("inject");
    await page.locator(".verb:visible").first().click();
    await page.getByLabel("api", { exact: true }).fill("Produce");
    await page.getByLabel(/^delay ms/).fill("700");
    await button(page, "inject").click();
    await page.waitForFunction(() => document.querySelector(".brokers-side .chips").textContent.includes("700 ms late"));
    await page.locator(".broker", { hasText: "Broker 2" }).getByRole("button", { name: "Pause" }).click();
    await page.waitForSelector('.broker[data-state="paused"]');
  },
  async "each lesson plays to its end, and all its rows are as a real Kafka answered"(page) {
    await page.getByRole("tab", { name: "Lessons" }).click();
    const titles = await page.locator(".lessons button").allTextContents();
    assert.equal(titles.length, 12);
    for (const title of titles) {
      await button(page, title).click();
      await button(page, "Next step").click();
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction(() => document.querySelectorAll(".steps li").length === 3);
      await page.locator(".lessons-tab svg.wheel").first().press("ArrowUp"); // selects a bucket
      await button(page, "To the end").click();
      const waiting = page.getByRole("region", { name: "Parked operations" }).last();
      await waiting.evaluate((region) => region.scrollTo(0, 1e6)); // time stands still, and other rows come into view
      await page.waitForFunction((region) => !region.querySelector("tbody tr:last-child td:nth-child(4):empty"), await waiting.elementHandle());
      const counts = [...(await page.textContent(".compared")).matchAll(/(\d+) of (\d+) rows?/g)];
      assert.ok(counts.length > 0 && counts.every(([, agree, rows]) => agree === rows), title);
      assert.equal(await page.locator(".row-of.bad").count(), 0);
    }
  },
  async "each tab fits into 700 pixels"(page) {
    await page.setViewportSize({ width: 700, height: 900 });
    for (const name of ["Chaos", "Cluster", "Lessons", "Timing wheel"]) {
      await page.getByRole("tab", { name, exact: true }).click();
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 700, name);
    }
  },
};
let code = 0;
try {
  const page = await open();
  for (const [claim, check] of Object.entries(claims)) {
    await check(page);
    assert.deepEqual(problems, []);
    console.log(`ok: ${claim}`);
  }
} catch (error) {
  console.log(error.stack);
  code = 1;
}
await context.close();
process.exit(code);
