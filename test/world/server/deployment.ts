/**
 * Several processes of one deployment, as on several machines: one bus, one shared secret, tokens
 * that all of them accept, and a data folder for each.
 */
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { v7 } from "uuid"
import type { Role } from "#schemas/settings.ts"
import { type Environment, newFolder, runVerb, type Server, startServer } from "./server.ts"

export interface DeploymentOptions {
  /** `nats.url` of all processes. */
  readonly url: string
  readonly replicas?: number
  /** Settings of all processes. */
  readonly environment?: Environment
}

export interface MemberOptions {
  /** All roles by default. */
  readonly roles?: ReadonlyArray<Role>
  /** Settings of this process only. */
  readonly environment?: Environment
  /** Folder of the release to run; this one by default. */
  readonly from?: string
}

const newToken = () => randomBytes(24).toString("hex")

/** A deployment without any running process. */
export const newDeployment = ({ url, replicas = 1, environment = {} }: DeploymentOptions) => {
  const folder = newFolder()
  const project_id = v7().replaceAll("-", "")
  const tokens = { admin: newToken(), member: newToken(), blob: newToken() }
  const member = { roles: ["member"], project_id, user_id: v7(), domain_id: "default" }
  const shared: Environment = {
    ALMANAC_NATS__URL: url,
    ALMANAC_NATS__REPLICAS: String(replicas),
    ALMANAC_CLUSTER__SECRET: newToken(),
    ALMANAC_AUTH__TOKENS: JSON.stringify([
      { name: "admin", token: tokens.admin, roles: ["admin", "svc_admin"] },
      { name: "member", token: tokens.member, ...member },
      {
        name: "blob",
        token: tokens.blob,
        scopes: ["blobs:read", "blobs:write", "cluster:admin"],
      },
    ]),
    ...environment,
  }
  const running = new Map<string, Server>()
  const settingsOf = ({ roles, environment = {} }: MemberOptions): Environment => ({
    ...shared,
    ...(roles && { ALMANAC_ROLES: roles.join(",") }),
    ...environment,
  })
  const dataOf = (name: string) => join(folder, name)
  /** Starts a process; a process with the same name reuses its data folder. */
  const start = async (name: string, options: MemberOptions = {}) => {
    const server = await startServer(dataOf(name), settingsOf(options), undefined, options.from)
    running.set(name, server)
    void server.ended.then(() => {
      if (running.get(name) === server) running.delete(name)
    })
    return server
  }
  return {
    tokens,
    project_id,
    start,
    dataOf,
    /** Runs a command on a machine with the shared settings and its own data folder. */
    verb: (name: string, args: ReadonlyArray<string>, options: MemberOptions = {}) =>
      runVerb(dataOf(name), args, settingsOf(options)),
    /** Sends SIGTERM to one process, or to all, and returns their exits. */
    stop: (name?: string) => {
      const servers = [...running].filter(([other]) => name === undefined || other === name)
      return Promise.all(servers.map(([, server]) => server.stop()))
    },
  }
}

export type Deployment = ReturnType<typeof newDeployment>
