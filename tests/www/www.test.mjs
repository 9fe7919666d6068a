/** The page in a headless Chromium: what it shows of each trouble, and that anyone can use it, under its policy. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ENDINGS, readPage } from "./plays.mjs";
import { launch, openPage, servePage, serveSources, WWW } from "./rig.mjs";

/** Real milliseconds for anything that takes a moment. */
const PATIENCE = 30_000;
const until = (page, mode) =>
  page.waitForFunction((wanted) => document.documentElement.dataset.mode === wanted, mode, { timeout: PATIENCE });
const skipToEnd = async (page) => {
  await page.click("#skip");
  await until(page, "done");
  return page.evaluate(readPage);
};

test("the page's sources pass the type checker", () => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", WWW], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

describe("the built page", () => {
  let server;
  let browser;
  before(async () => {
    server = await servePage();
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  const open = (path = "", options = {}) => openPage(browser, server.url + path, options);

  test("every trouble that can be chosen is played here", async () => {
    const { page, context } = await open();
    const ids = await page.$$eval("#picker input", (inputs) => inputs.map((input) => input.value));
    assert.deepEqual(ids.sort(), Object.keys(ENDINGS).sort());
    await context.close();
  });

  test("each trouble shows its attempts, their records and what the caller has", async (t) => {
    const { page, context, complaints } = await open();
    for (const [id, ending] of Object.entries(ENDINGS)) {
      await t.test(id, async () => {
        await page.check(`#picker input[value="${id}"]`);
        await until(page, "idle");
        const shown = await skipToEnd(page);
        assert.deepEqual(shown.attempts, ending.attempts);
        assert.deepEqual(shown.kinds, ending.kinds);
        assert.equal(shown.caller, ending.caller);
        for (const words of ending.shows ?? []) assert.ok(shown.all.includes(words), `no “${words}” in ${shown.all}`);

        assert.deepEqual(
          shown.records.map((record) => record.attempt_no),
          ending.attempts.map((_, at) => at + 1),
        );
        assert.equal(shown.call.attempts, ending.attempts.length);
        assert.equal(shown.call.status, ending.caller === "has the answer" ? "succeeded" : "failed");
        for (const record of shown.records) assert.equal(record.logical_request_id, shown.call.logical_request_id);
        assert.ok(shown.call.latency_ms < 6000, `takes ${shown.call.latency_ms} ms at 1×`);
        assert.match(shown.now, ending.caller === "has the answer" ? /has its answer/ : /error/);
      });
    }
    assert.deepEqual(await complaints(), []);
    await context.close();
  });

  test("a play goes on in time, can be paused, and its records do not depend on the pace", async () => {
    const { page, context, complaints } = await open("#503");
    await page.click("#play");
    await page.waitForFunction(() => document.querySelector(".attempt[data-status='failed']"), null, {
      timeout: PATIENCE,
    });
    await page.click("#play");
    await until(page, "paused");
    const paused = await page.evaluate(readPage);
    assert.equal(paused.attempts[0], "HTTP 503, overloaded");
    assert.equal(paused.caller, "waits");
    assert.equal(paused.call, null);
    await page.waitForTimeout(300);
    assert.deepEqual(await page.evaluate(readPage), paused);

    await page.click("#play");
    await until(page, "done");
    const played = await page.evaluate(readPage);
    const skipped = await skipToEnd(page);
    assert.deepEqual(played.records, skipped.records);
    assert.deepEqual(played.call, skipped.call);
    assert.deepEqual(await complaints(), []);
    await context.close();
  });

  test("a backoff is drawn as long as its record says, and the next attempt begins where it ends", async () => {
    const { page, context } = await open("#outage");
    const { records } = await skipToEnd(page);
    const boxes = await page.$$eval(".attempt", (rows) =>
      rows.map((row) =>
        [...row.querySelectorAll(".track .segment")].map((box) => {
          const track = box.parentElement.getBoundingClientRect();
          const { left, right } = box.getBoundingClientRect();
          return [(left - track.left) / track.width, (right - track.left) / track.width];
        }),
      ),
    );
    const [head, backoff] = boxes[0];
    const perMs = (head[1] - head[0]) / records[0].latency_ms;
    assert.ok(Math.abs((backoff[1] - backoff[0]) / perMs - records[0].backoff_ms) < 20);
    assert.ok(Math.abs(backoff[1] - boxes[1][0][0]) < 0.01);
    await context.close();
  });

  test("another seed gives other waits, and the same one the same", async () => {
    const { page, context } = await open("#503");
    const first = await skipToEnd(page);
    await page.fill("#seed", "9");
    await page.press("#seed", "Enter");
    const other = await skipToEnd(page);
    await page.fill("#seed", "2");
    await page.press("#seed", "Enter");
    const again = await skipToEnd(page);
    assert.notEqual(other.records[0].backoff_ms, first.records[0].backoff_ms);
    assert.deepEqual(again.records, first.records);
    await context.close();
  });

  test("choosing another trouble in the middle of a play drops it", async () => {
    const { page, context, complaints } = await open("#429");
    await page.click("#play");
    await page.waitForFunction(() => document.querySelector(".attempt"), null, { timeout: PATIENCE });
    await page.check('#picker input[value="billing"]');
    const chosen = await page.evaluate(readPage);
    assert.equal(chosen.mode, "idle");
    assert.deepEqual(chosen.attempts, []);
    const shown = await skipToEnd(page);
    assert.deepEqual(shown.attempts, ENDINGS.billing.attempts);
    assert.deepEqual(await complaints(), []);
    await context.close();
  });

  test("everything can be done by keyboard, and the focus is always seen", async () => {
    const { page, context } = await open();
    /** Presses Tab and says where the focus is and whether it can be seen. */
    const tab = async () => {
      await page.keyboard.press("Tab");
      return page.evaluate(() => {
        const focused = document.activeElement;
        const ringed = focused.matches("#picker input") ? focused.nextElementSibling : focused;
        const { outlineStyle, outlineWidth } = getComputedStyle(ringed);
        return {
          where: focused.id || focused.value || focused.className || focused.tagName,
          name: focused.labels?.[0]?.textContent || focused.textContent,
          seen: outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2,
        };
      });
    };
    const stops = [];
    for (let i = 0; i < 6; i += 1) stops.push(await tab());
    assert.deepEqual(
      stops.map(({ where }) => where),
      ["skip", "503", "play", "skip", "speed", "seed"],
    );
    for (const { where, name, seen } of stops) {
      assert.ok(seen, `no focus ring on ${where}`);
      assert.ok(name.trim() !== "", `${where} has no name`);
    }

    await page.focus('#picker input[value="503"]');
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.textContent("#trouble-title"), "429 with Retry-After");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await until(page, "running");
    await page.keyboard.press("Enter");
    await until(page, "paused");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await until(page, "done");
    assert.deepEqual((await page.evaluate(readPage)).attempts, ENDINGS[429].attempts);

    // On to the first disclosure, which opens.
    for (let i = 0; i < 3; i += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.$eval(".caller details", (details) => details.open), true);
    await context.close();
  });

  test("progress is told in a live region, once for each thing that happens", async () => {
    const { page, context } = await open("#stream-error-early");
    await page.evaluate(() => {
      const region = document.querySelector("[role=status][aria-live=polite]");
      globalThis.told = [];
      new MutationObserver(() => globalThis.told.push(region.textContent)).observe(region, {
        childList: true,
        characterData: true,
        subtree: true,
      });
    });
    await page.selectOption("#speed", "0.5");
    await page.click("#play");
    await until(page, "done");
    const told = await page.evaluate(() => globalThis.told);
    assert.equal(told[0], "Attempt 1: waiting for a head.");
    assert.ok(told.includes("Attempt 1: HTTP 200, overloaded. Decision: try again in 733 ms."), told.join("\n"));
    assert.match(told.at(-1), /^The caller has its answer, after 2 attempts, in 2\.75 s\.$/);
    assert.ok(told.length <= 8, told.join("\n"));
    assert.equal(new Set(told).size, told.length);
    await context.close();
  });

  test("on a phone nothing is wider than the screen, and what is pressed is large enough", async () => {
    const { page, context } = await open("", { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true });
    for (const id of Object.keys(ENDINGS)) {
      await page.check(`#picker input[value="${id}"]`);
      await skipToEnd(page);
      for (const summary of await page.$$("summary")) await summary.click();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(width, 360, `${id} is ${width} px wide`);
    }
    const heights = await page.$$eval("button, select, #seed", (all) =>
      all.map((one) => one.getBoundingClientRect().height),
    );
    for (const height of heights) assert.ok(height >= 44, `${height} px high`);
    await context.close();
  });

  test("dark and light differ, and in both the text is readable", async () => {
    const pictures = [];
    for (const colorScheme of ["light", "dark"]) {
      const { page, context } = await open("#outage", { colorScheme });
      await skipToEnd(page);
      pictures.push(await page.screenshot());
      const poor = await page.evaluate(poorContrast);
      assert.deepEqual(poor, [], colorScheme);
      await context.close();
    }
    assert.ok(!pictures[0].equals(pictures[1]));
  });

  test("who asks for less motion gets a play whole, at once", async () => {
    const { page, context } = await open("#429", { reducedMotion: "reduce" });
    assert.ok(await page.isVisible(".still"));
    await page.evaluate(() => {
      globalThis.modes = [];
      new MutationObserver(() => globalThis.modes.push(document.documentElement.dataset.mode)).observe(
        document.documentElement,
        { attributes: true },
      );
    });
    await page.click("#play");
    await until(page, "done");
    assert.deepEqual(await page.evaluate(() => globalThis.modes), ["done"]);
    assert.deepEqual((await page.evaluate(readPage)).attempts, ENDINGS[429].attempts);
    await context.close();
  });

  test("its policy allows WebAssembly and no eval, and stands in the page and in the header", async () => {
    const header = (await fetch(server.url)).headers.get("content-security-policy");
    const html = readFileSync(join(server.outDir, "index.html"), "utf8");
    const meta = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(html)?.[1].replaceAll("&#39;", "'");
    for (const policy of [header, meta]) {
      assert.match(policy, /(^|; )script-src 'self' 'wasm-unsafe-eval'(;|$)/);
      assert.match(policy, /(^|; )style-src 'self'(;|$)/);
      assert.match(policy, /(^|; )connect-src 'none'(;|$)/);
    }
    assert.doesNotMatch(html, /<style|style="|<script(?![^>]* src=)/);

    const { page, context } = await open();
    const refused = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "globalThis.inlineRan = true";
      document.head.append(script);
      return { inline: globalThis.inlineRan === undefined, violations: globalThis.violations.length };
    });
    assert.equal(refused.inline, true);
    await page.waitForFunction(() => globalThis.violations.length > 0, null, { timeout: PATIENCE });
    await context.close();
  });

  test("where WebAssembly is forbidden the page says what to do", async () => {
    const { page, context } = await open("");
    await page.route("**/*", async (route) => {
      const response = await route.fetch();
      const strict = (text) => text.replaceAll(/ 'wasm-unsafe-eval'|&#39;wasm-unsafe-eval&#39;/g, "");
      const headers = { ...response.headers() };
      headers["content-security-policy"] = strict(headers["content-security-policy"] ?? "");
      const isPage = headers["content-type"]?.startsWith("text/html") ?? false;
      await route.fulfill({ response, headers, ...(isPage ? { body: strict(await response.text()) } : {}) });
    });
    await page.reload();
    await page.click("#play");
    await until(page, "failed");
    assert.match(await page.textContent("#now"), /can't play.*Add 'wasm-unsafe-eval' to its script-src/);
    await context.close();
  });
});

test("the dev server serves the same page under its policy, without a complaint", async () => {
  const server = await serveSources();
  const browser = await launch();
  try {
    const { page, complaints } = await openPage(browser, `${server.url}#503`);
    await page.waitForSelector("#play", { timeout: PATIENCE });
    const shown = await skipToEnd(page);
    assert.deepEqual(shown.attempts, ENDINGS[503].attempts);
    const header = (await fetch(server.url)).headers.get("content-security-policy");
    assert.match(header, /(^|; )script-src 'self' 'wasm-unsafe-eval'(;|$)/);
    assert.match(header, /(^|; )style-src 'self'(;|$)/);
    assert.deepEqual(await complaints(), []);
  } finally {
    await browser.close();
    await server.close();
  }
});

/** Texts whose contrast with what is behind them is below 4.5, as WCAG counts. Runs in the page. */
function poorContrast() {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.textContent.trim() === "" || element.getClientRects().length === 0) continue;
    const [one, two] = [luminance(rgba(getComputedStyle(element).color)), luminance(behind(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.className} “${node.textContent.trim()}”`);
  }
  return poor;
}
