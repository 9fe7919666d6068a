// A provider over real HTTP for workers to call: it answers with the prompt that it was sent, in the manner that the
// header `x-kind` or the parameter `kind` asks for.

import { createServer } from "node:http";

const chat = (content) =>
  JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }] });
const event = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;

/** Resolves to `{ url, ledger, asked, close }`. */
export async function startProvider() {
  const asked = new Map();
  const ledger = [];
  const server = createServer(async (request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    if (request.url === "/ledger") {
      ledger.push(JSON.parse(body));
      response.end();
      return;
    }
    const id = JSON.parse(body).messages[0].content;
    const times = (asked.get(id) ?? 0) + 1;
    asked.set(id, times);
    const kind = request.headers["x-kind"] ?? new URL(request.url, "http://localhost").searchParams.get("kind");
    const sse = { "content-type": "text/event-stream" };
    const later = (ms, work) => setTimeout(() => response.destroyed || work(), ms);
    if (kind === "flaky" && times === 1) return fail(response, 503, {});
    if (kind === "backoff") return fail(response, 503, { "retry-after": "2" });
    if (kind === "hang") return;
    if (kind === "slow-body") {
      response.writeHead(200, { "content-type": "application/json" });
      response.write(chat(id).slice(0, 20));
      later(400, () => response.end(chat(id).slice(20)));
      return;
    }
    if (kind === "stream" || kind === "slow-stream") {
      const gap = kind === "stream" ? 5 : 200;
      response.writeHead(200, sse);
      response.write(event({ role: "assistant", content: "" }) + event({ content: `${id}:` }));
      later(gap, () => response.write(event({ content: id })));
      later(2 * gap, () => response.end(`${event({}, "stop")}data: [DONE]\n\n`));
      return;
    }
    later(5, () => response.writeHead(200, { "content-type": "application/json" }).end(chat(id)));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    asked,
    ledger,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function fail(response, status, headers) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(
    '{"error":{"message":"The engine is currently overloaded","type":"server_error","code":"server_is_overloaded"}}',
  );
}
