/** A scripted upstream on a thread of its own, for tests that block theirs: answers everything with the step it was given. */
import { parentPort, workerData } from "node:worker_threads";
import { startUpstream } from "./upstream.mjs";

const upstream = await startUpstream({ script: [workerData], repeatLast: true });
parentPort?.postMessage(upstream.url);
