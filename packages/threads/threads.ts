/** Worker threads: requests to one, and its priority. */
export { serveCalls, type ThreadCall, type ThreadCallOptions, threadCall } from "./call.ts"
export { yieldToOthers } from "./priority.ts"
