/** Almanac in the gateway suite: the whole server, as `npm start` runs it. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"

export interface Gateway {
  /** The URL of a small read: GET, 200, with a Content-Length. */
  readonly url: string
  readonly token: string
  /** A tenant's token. */
  readonly tenant: string
  /** The id of the tenant's project. */
  readonly tenant_project_id: string
  readonly trust_id: string
  /** A token with every scope of blob storage. */
  readonly blob: string
  readonly pid: number
  readonly stop: () => Promise<void>
}

const this_checkout = join(import.meta.dirname, "../..")

/**
 * The command behind `npm start` in a checkout; earlier versions have no script that sets limits.
 */
const commandOf = (checkout: string): readonly [string, ...ReadonlyArray<string>] => {
  const server = [process.execPath, join(checkout, "launcher/run.mjs"), "serve"] as const
  const script = join(checkout, "launcher/start.sh")
  return existsSync(script) ? ["/bin/sh", script, ...server] : server
}

/**
 * Starts the whole server as `npm start` does, in a separate process, with data in `folder` and
 * with these settings in the environment.
 */
export const startGateway = async (
  folder: string,
  more: Readonly<Record<string, string>> = {},
  checkout = this_checkout,
): Promise<Gateway> => {
  const [program, ...args] = commandOf(checkout)
  const settings = { ALMANAC_DATA_DIR: folder, ALMANAC_API__BIND_PORT: "0", ...more }
  const server = spawn(program, [...args, "--set", "api.bind_host=127.0.0.1"], {
    cwd: checkout,
    env: { ...process.env, ...settings },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const ended = once(server, "exit")
  const ready = (async () => {
    for await (const line of createInterface(server.stdout)) {
      const [, url] = /^almanac ready (\S+)/.exec(line) ?? []
      if (url !== undefined) return url
    }
    throw new Error("the server ended before it was ready")
  })()
  const url = await ready
  const credentials = JSON.parse(readFileSync(join(folder, "dev-credentials.json"), "utf8"))
  return {
    url: `${url}/v1/`,
    token: credentials.admin.token,
    tenant: credentials.tenant.token,
    tenant_project_id: credentials.tenant.project_id,
    trust_id: credentials.tenant.trust_id,
    blob: credentials.blob.token,
    pid: server.pid ?? 0,
    stop: async () => {
      server.kill("SIGTERM")
      await ended
    },
  }
}
