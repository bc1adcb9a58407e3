/** `GET /v1/events` behind the gateway, with a bus of the test's choice and known callers. */
import { get, type IncomingHttpHeaders, type IncomingMessage } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, type Scope } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { httpTransport } from "#adapters/http/transport.ts"
import type { Caller } from "#gateway/caller.ts"
import { openDoor } from "#gateway/door.ts"
import { Identity, Unauthenticated } from "#gateway/identity.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { mount } from "#gateway/routes.ts"
import { Events } from "#gateway/system/apis/events.ts"
import { subscribe } from "#gateway/system/events.ts"
import { PublishedNames } from "#gateway/system/published-names.ts"
import { issueTicket } from "#gateway/ticket/issue.ts"
import { EventTickets } from "#gateway/ticket/tickets.ts"
import { httpServer } from "#http"
import type { PublishedHistory } from "#projections/published/history.ts"
import { type Published, PublishedEvents } from "#projections/published-events.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { settingsWith } from "../http.ts"

const Api = HttpApi.make("system").add(Events)
const handlers = HttpApiBuilder.group(Api, "events", (group) =>
  group.handle("subscribe", subscribe).handle("ticket", () => issueTicket),
)

const caller = (actor: string, more: Partial<Caller> = {}): Caller => ({
  actor,
  kind: "static",
  scopes: new Set(),
  roles: new Set(),
  ...more,
})

/** Callers by token. */
const callers: Readonly<Record<string, Caller>> = {
  admin: caller("admin", { roles: new Set(["admin"]) }),
  reader: caller("reader", { scopes: new Set(["blobs:read"]) }),
  writer: caller("writer", { scopes: new Set(["blobs:write", "cluster:admin"]) }),
  one: caller("one", { project_id: "p1", roles: new Set(["member"]) }),
  two: caller("two", { project_id: "p2", roles: new Set(["member"]) }),
  both: caller("both", { project_id: "p2", scopes: new Set(["blobs:read"]) }),
}

const identity = Layer.succeed(
  Identity,
  Identity.of({
    authenticate: ({ token }) => {
      if (token === undefined) return Effect.fail(new Unauthenticated({ reason: "missing" }))
      const known = callers[token()]
      return known ? Effect.succeed(known) : Effect.fail(new Unauthenticated({ reason: "unknown" }))
    },
  }),
)

/** The published types of these tests. */
const names = [
  ["blob-storage", { blob_stored: {}, node_joined: {} }],
  ["share-protection", { job_queued: {} }],
  ["plant-disease", {}],
] as const

/** Serves until the scope closes, and returns the URL of the stream. */
export const serveEvents = Effect.gen(function* () {
  const events = yield* Effect.context<PublishedEvents | PublishedHistory>()
  const known = Context.add(events, PublishedNames, names).pipe(
    Context.add(EventTickets, yield* EventTickets),
  )
  const run = Effect.gen(function* () {
    const mounted = yield* mount({
      name: "operations",
      api: Api,
      routes: Effect.map(
        HttpRouter.toHttpEffect(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers))),
        Effect.provideContext(Context.merge(known, yield* Effect.context<Scope.Scope>())),
      ),
    })
    const settings = settingsWith()
    const door = yield* openDoor([mounted], () => settings)
    const { url } = yield* httpServer(settings, door)
    return { url: `${url}/v1/events`, inFlight: door.inFlight }
  })
  const layers = Layer.mergeAll(httpTransport, NodeHttpServer.layerHttpServices, identity)
  return yield* Effect.provideContext(run, yield* Layer.build(layers))
})

/** A published event with this sequence number. */
export const publishedEvent = (
  n: number,
  more: Partial<CloudEvent> & { readonly service?: string; readonly aggregate?: string } = {},
): Published => {
  const { service = "blob-storage", aggregate = "blob", ...fields } = more
  return {
    service,
    aggregate,
    event: {
      specversion: "1.0",
      id: `${n}.0`,
      source: `/almanac/${service}/${aggregate}`,
      type: "blob_stored",
      subject: `s${n}`,
      time: "2026-11-20T12:00:00.000Z",
      datacontenttype: "application/json",
      position: n,
      actor: "test",
      data: { n },
      ...fields,
    },
  }
}

/** Appends these after all previous events. */
export const tell = Effect.fnUntraced(function* (...events: ReadonlyArray<Published>) {
  const published = yield* PublishedEvents
  return yield* published.append(events, (yield* published.bounds)?.last ?? 0)
})

/** The parsed form of one block of the stream. */
export interface Block {
  /** The sequence; `epoch` is the prefix of the id. */
  readonly id: number
  readonly epoch: string
  readonly type: string
  readonly event: CloudEvent
}

const block = (text: string): Block | undefined => {
  const [, epoch = "", id, type, data = ""] =
    /^id: ([0-9a-f]{8})-(\d+)\nevent: (\w+)\ndata: ([^\n]*)$/.exec(text) ?? []
  if (id === undefined || type === undefined) return undefined
  // The callers assert the type of the event.
  return { id: Number(id), epoch, type, event: JSON.parse(data) as CloudEvent }
}

/** Polls every 10 ms, for 20 s at most. */
export const until = async (what: () => boolean, why = "it never came") => {
  const begun = performance.now()
  while (!what()) {
    if (performance.now() - begun > 20_000) assert.fail(why)
    await new Promise((resume) => setTimeout(resume, 10))
  }
}

/** A client of the stream, on a connection of its own. */
export interface Reader {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The response body, if it is not a stream. */
  readonly text: string
  readonly blocks: Array<Block>
  readonly comments: Array<string>
  /** Resolves at the end of the stream: "end" if it ended cleanly, else "cut". */
  readonly ended: Promise<"end" | "cut">
  readonly leave: () => void
  /** Pauses and resumes reading. */
  readonly pause: () => void
  readonly resume: () => void
}

const answerOf = (url: string, headers: Readonly<Record<string, string>>) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent: false, headers }, resolve).on("error", reject)
  })

/** Connects, and reads until the stream ends or `leave` is called. */
export const read = async (
  url: string,
  token: string | undefined,
  after?: number | string,
): Promise<Reader> => {
  const answer = await answerOf(url, {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(after !== undefined && { "last-event-id": String(after) }),
  })
  const blocks: Array<Block> = []
  const comments: Array<string> = []
  const block_lines: Array<string> = []
  const is_stream = answer.statusCode === 200
  let rest = ""
  answer.setEncoding("utf8").on("data", (text: string) => {
    if (!is_stream) {
      rest += text
      return
    }
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) {
      if (line !== "") {
        if (/^(:|retry: )/.test(line)) comments.push(line)
        else block_lines.push(line)
        continue
      }
      const found = block(block_lines.splice(0).join("\n"))
      if (found === undefined) comments.push("an empty block")
      else blocks.push(found)
    }
  })
  const ended = new Promise<"end" | "cut">((resolve) => {
    answer.on("close", () => resolve(answer.complete ? "end" : "cut")).on("error", () => undefined)
  })
  if (is_stream) await until(() => comments.length > 0, "no first comment")
  else await ended
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    text: rest,
    blocks,
    comments,
    ended,
    leave: () => answer.destroy(),
    pause: () => answer.pause(),
    resume: () => answer.resume(),
  }
}

const admin = {
  actor: "admin",
  kind: "static",
  scopes: new Set<string>(),
  roles: new Set(["admin"]),
} as const
export const asAdmin = Effect.provideService(
  RequestContext,
  RequestContext.of({
    caller: admin,
    request_id: "r",
    correlation_id: "c",
    command_id: "k",
  }),
)

/** The body of the handler's response, without HTTP. */
export const bodyOf = Effect.fnUntraced(function* (request: Parameters<typeof subscribe>[0]) {
  const { body } = yield* subscribe(request)
  if (body._tag !== "Stream") assert.fail(`The body is ${body._tag}.`)
  return body.stream
})

/** The content of a stream's error. */
export const error = ({ status, text }: Reader) => {
  // Each test asserts the fields that it uses.
  const { code, detail } = JSON.parse(text) as { code: string; detail: string }
  return { status, code, detail }
}
