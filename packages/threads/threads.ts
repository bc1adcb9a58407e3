/** Worker threads: calls to one, and its priority. */
export { answerCalls, type ThreadCall, type ThreadCallOptions, threadCall } from "./call.ts"
export { yieldToOthers } from "./priority.ts"
