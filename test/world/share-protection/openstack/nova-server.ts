/**
 * Nova and Glance as their API references describe them (Compute API at microversion 2.79, Image
 * API 2), limited to the features that workers need, with the documented faults.
 */
import { randomUUID } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

export interface NovaServer {
  readonly id: string
  readonly name: string
  status: string
  readonly boot_request: Readonly<Record<string, unknown>>
}

export interface Cloud {
  readonly url: string
  readonly servers: Map<string, NovaServer>
  /** Requests as `METHOD path`, in order. */
  readonly calls: Array<string>
  /** Replaces the response: a status with its body from the reference. */
  fault: { readonly on: RegExp; readonly status: number; readonly body: object } | undefined
  /** Whether a requested server is created although the response is lost. */
  is_answer_lost: boolean
}

/** Glance's own fields, plus the properties that an operator set. */
const images = [
  { id: randomUUID(), name: "worker-2", svc_worker_image: "1", svc_engine_version: "0.19.1" },
  { id: randomUUID(), name: "debian" },
].map((image) => ({ ...image, status: "active", visibility: "private", disk_format: "qcow2" }))

const bodyOf = async (request: IncomingMessage) => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part)
  return parts.length === 0 ? undefined : JSON.parse(Buffer.concat(parts).toString())
}

/** The documented response to an incomplete request. */
const badRequest = (message: string) => ({
  status: 400,
  body: { badRequest: { code: 400, message } },
})

interface Said {
  readonly status: number
  readonly body?: object
}

const create = (cloud: Cloud, server: Record<string, unknown>): Said => {
  const { name, imageRef, flavorRef, networks } = server
  if (typeof name !== "string") return badRequest("name is required")
  if (!images.some(({ id }) => id === imageRef)) return badRequest("Can not find requested image")
  if (flavorRef !== "small") return badRequest("Flavor could not be found.")
  // Since 2.37 networks are required: "auto", "none" or a list.
  if (networks !== "auto" && !Array.isArray(networks)) return badRequest("networks is required")
  const id = randomUUID()
  cloud.servers.set(id, { id, name, status: "BUILD", boot_request: server })
  return { status: 202, body: { server: { id, adminPass: "x", links: [], security_groups: [] } } }
}

/** Each listing activates the servers that are being built. */
const detail = (cloud: Cloud, name: string | null): Said => {
  const found = [...cloud.servers.values()].filter((one) => new RegExp(name ?? "").test(one.name))
  const servers = found.map(({ id, name, status }) => ({ id, name, status, links: [] }))
  for (const server of found) if (server.status === "BUILD") server.status = "ACTIVE"
  return { status: 200, body: { servers } }
}

const listed = (name: string | null): Said => ({
  status: 200,
  body: { images: images.filter((image) => image.name === name), schema: "/v2/schemas/images" },
})

const answered = (cloud: Cloud, method: string, url: URL, body: unknown): Said => {
  const path = url.pathname
  if (path === "/image/v2/images") return listed(url.searchParams.get("name"))
  if (path === "/compute/servers/detail") return detail(cloud, url.searchParams.get("name"))
  if (path === "/compute/servers" && method === "POST") {
    return create(cloud, (body as { server: Record<string, unknown> }).server)
  }
  const id = /^\/compute\/servers\/(.+)$/.exec(path)?.[1] ?? ""
  if (method === "DELETE" && cloud.servers.delete(id)) return { status: 204 }
  const message = `Instance ${id} could not be found.`
  return { status: 404, body: { itemNotFound: { code: 404, message } } }
}

/** Runs until the scope closes. */
export const novaServer = Effect.acquireRelease(
  Effect.promise(async () => {
    const cloud: Cloud & { url: string } = {
      url: "",
      servers: new Map(),
      calls: [],
      fault: undefined,
      is_answer_lost: false,
    }
    const server = createServer((request, response) => {
      void bodyOf(request).then((body) => {
        const { method = "", url: path = "" } = request
        cloud.calls.push(`${method} ${path}`)
        const is_ours = request.headers["x-auth-token"] === "service-token"
        const is_nova = path.startsWith("/compute")
        const wants = request.headers["openstack-api-version"]
        const fault = cloud.fault?.on.test(`${method} ${path}`) ? cloud.fault : undefined
        const answer: Said = !is_ours
          ? { status: 401, body: { error: { code: 401 } } }
          : is_nova && wants !== "compute 2.79"
            ? { status: 406, body: {} }
            : (fault ?? answered(cloud, method, new URL(path, "http://cloud"), body))
        if (cloud.is_answer_lost && method === "POST") return void request.socket.destroy()
        response.writeHead(answer.status, { "content-type": "application/json" })
        response.end(answer.body === undefined ? undefined : JSON.stringify(answer.body))
      })
    })
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    cloud.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { cloud: cloud as Cloud, server }
  }),
  ({ server }) =>
    Effect.promise(async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    }),
)
