/**
 * Protects the process's memory and environment, which contain passwords. The launcher disables
 * core dumps. Source: decision 0146.
 */

/** Disables the debugger's signal and the environment in reports. Called once at startup. */
export const keepPrivate = () => {
  // By default Node opens a debugger on loopback for this signal, where any local user could run
  // code as this user.
  process.on("SIGUSR1", () => undefined)
  // Reports enabled by NODE_OPTIONS are written without the environment.
  if (process.report !== undefined) process.report.excludeEnv = true
}
