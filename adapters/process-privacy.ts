/**
 * What a process must not tell of itself: its memory and its environment hold passwords. Core dumps
 * are off by how it is started. Source: decision 0146.
 */

/** Once, at the start of a process. */
export const keepPrivate = () => {
  // Node's own answer to this signal is a debugger on loopback, where any user of the machine may
  // run what he likes as this one.
  process.on("SIGUSR1", () => undefined)
  // Reports are written where NODE_OPTIONS asks for them: then without the environment.
  if (process.report !== undefined) process.report.excludeEnv = true
}
