// Headless Chromium, on a page whose Content-Security-Policy allows what evenkeel needs and nothing else.

import { launchChromium, pageFor, serveFolder } from "../lib/chromium.mjs";
import { broken, stage } from "../lib/tools.mjs";

const CSP = "default-src 'none'; script-src 'self' 'nonce-evenkeel' 'wasm-unsafe-eval'; connect-src 'self'";
const CODE = `
  import { conformance } from "/main.mjs";
  conformance().then((result) => { window.result = result; }, (error) => { window.result = { thrown: String(error) }; });`;

export default {
  async chromium() {
    const folder = await stage("chromium");
    const server = await serveFolder(folder, { "/": { html: pageFor(folder, CODE), csp: CSP } });
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const said = [];
      page.on("console", (message) => said.push(message.text()));
      page.on("pageerror", (error) => said.push(String(error)));
      await page.goto(server.url);
      try {
        await page.waitForFunction(() => window.result !== undefined, undefined, { timeout: 90_000 });
      } catch (error) {
        return broken(`${error.message}\n${said.join("\n")}`);
      }
      const result = await page.evaluate(() => window.result);
      return result.thrown === undefined ? result : broken(result.thrown);
    } finally {
      await browser.close();
      await server.close();
    }
  },
};
