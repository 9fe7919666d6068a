// keel.fetch is what the SDKs ask for.

import Anthropic from "@anthropic-ai/sdk";
import { createKeel } from "evenkeel";
import OpenAI from "openai";

const keel = createKeel();

new OpenAI({ apiKey: "", fetch: keel.fetch });
new Anthropic({ apiKey: "", fetch: keel.fetch });
new OpenAI({ apiKey: "", fetch: keel.with({ tenant: "acme" }).fetch });

export const asGlobal: typeof globalThis.fetch = keel.fetch;
globalThis.fetch = keel.fetch;
