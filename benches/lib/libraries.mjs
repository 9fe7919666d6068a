// Everything that the call bench compares, in one module that a bundler can put in front of any host.

import Anthropic from "@anthropic-ai/sdk";
import * as cockatiel from "cockatiel";
import { createKeel } from "evenkeel";
import ky from "ky";
import OpenAI from "openai";
import pRetry from "p-retry";

export const libraries = { createKeel, cockatiel, pRetry, ky, OpenAI, Anthropic };
