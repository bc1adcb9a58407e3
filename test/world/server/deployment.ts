/**
 * Several processes of one deployment, as operators of more than one machine have them: one bus,
 * one shared secret, tokens that all of them know, a data folder for each.
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
  /** Settings that all processes have. */
  readonly environment?: Environment
}

export interface MemberOptions {
  /** All of them where absent. */
  readonly roles?: ReadonlyArray<Role>
  /** Settings of this process alone. */
  readonly environment?: Environment
  /** Where the release is that is run; this one where absent. */
  readonly from?: string
}

const newToken = () => randomBytes(24).toString("hex")

/** A deployment of which nothing runs yet. */
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
  /** Starts a process; one of the same name has its data folder again. */
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
    /** Runs a verb of a machine that has the shared settings and a data folder of its own. */
    verb: (name: string, args: ReadonlyArray<string>, options: MemberOptions = {}) =>
      runVerb(dataOf(name), args, settingsOf(options)),
    /** SIGTERM to one, or to all that run, and how they ended. */
    stop: (name?: string) => {
      const servers = [...running].filter(([other]) => name === undefined || other === name)
      return Promise.all(servers.map(([, server]) => server.stop()))
    },
  }
}

export type Deployment = ReturnType<typeof newDeployment>
