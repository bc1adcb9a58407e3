/** Child processes that end with this one, and the deadline of a shutdown. */
export { guard_name, spawnGuarded } from "./guarded-process.ts"
export { newStopDeadline, StopDeadline, work_ms } from "./stop-deadline.ts"
