/** `/v1/webhooks` behind the gateway, in memory: the callers, and the requests sent to webhooks. */
import { it } from "@effect/vitest"
import { Context, Effect, Layer, Stream } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Webhook } from "#actors/system/webhook.ts"
import { WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { type Parcel, WebhookSecrets, WebhookSender } from "#actors/system/webhooks/sender.ts"
import { httpTransport } from "#adapters/http/transport.ts"
import { webhookCursorsMemory } from "#adapters/system/webhook/cursors-memory.ts"
import { secretsWith } from "#adapters/system/webhook/key.ts"
import { Log } from "#events/log.ts"
import type { Authenticate } from "#gateway/identity.ts"
import { appOf } from "#gateway/routes.ts"
import { AdminWebhooksGroup, WebhooksGroup } from "#gateway/system/apis/webhooks.ts"
import { PublishedNames } from "#gateway/system/published-names.ts"
import { WebhookLimit, webhookHandlers } from "#gateway/system/webhooks.ts"
import { Transport } from "#gateway/transport.ts"
import { logMemory } from "#journal"
import { PublishedEvents } from "#projections/published-events.ts"
import { WebhookModel } from "#projections/system/webhook-model.ts"
import type { WebhookCommand } from "#schemas/system/webhook.ts"
import { sqlite } from "#sqlite"
import { serveHttp } from "../http.ts"
import { temporaryFolder } from "../programs/nats.ts"
import { eventsMemory } from "../publishing.ts"
import { publishedEvent, tell } from "./events-served.ts"

const Api = HttpApi.make("system").add(WebhooksGroup, AdminWebhooksGroup)
const handlers = Layer.mergeAll(
  HttpApiBuilder.group(Api, "webhooks", (group) => group.handleAll(webhookHandlers)),
  HttpApiBuilder.group(Api, "admin-webhooks", (group) => group.handleAll(webhookHandlers)),
)

const callers: Readonly<Record<string, readonly [roles: ReadonlyArray<string>, project?: string]>> =
  {
    admin: [["admin"]],
    one: [["member"], "p1"],
    two: [["member"], "p2"],
    stranger: [["reader"], "p1"],
    homeless: [["member"]],
  }

const authenticate: Authenticate = ({ token }) => {
  const name = token?.() ?? "admin"
  const [roles, project_id] = callers[name] ?? [[]]
  return Effect.succeed({
    actor: name,
    kind: "static",
    scopes: new Set<string>(),
    roles: new Set(roles),
    ...(project_id === undefined ? {} : { project_id }),
  })
}

/** Accepts everything except requests to a disallowed host. */
const senderOf = (sent: Array<Parcel>) =>
  Layer.succeed(WebhookSender, {
    refusal: (url) => (url.startsWith("https://") ? undefined : "an https URL is required"),
    send: (parcel) => {
      sent.push(parcel)
      return Effect.succeed({ is_delivered: true, status: 200, detail: "It answered 200." })
    },
  })

interface Answered {
  readonly status: number
  readonly headers: Headers
  /** Each test asserts the fields that it uses. */
  readonly body: ReturnType<typeof JSON.parse>
}

export interface Asked {
  readonly ask: (
    who: string,
    method: string,
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ) => Promise<Answered>
  readonly command: (id: string, command: WebhookCommand) => Promise<number>
  readonly publish: (count: number) => Promise<number>
  readonly sent: ReadonlyArray<Parcel>
  readonly logText: () => Promise<string>
}

export const limit = 3

const commanded = (command_id: string, id: string, command: WebhookCommand) =>
  Effect.flatMap(Commands, (to) =>
    to.send(
      { command_id, actor: "test", at: "2026-11-22T00:00:00.000Z" },
      address(Webhook, id, command),
    ),
  )

export const served = (name: string, body: (request: Asked) => Promise<void>) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const sent: Array<Parcel> = []
      const folder = yield* temporaryFolder
      const secrets = Layer.succeed(WebhookSecrets, secretsWith(Buffer.alloc(32, 1)))
      const log = Layer.provideMerge(host, logMemory)
      const model = WebhookModel.layer.pipe(Layer.provide(sqlite(folder)), Layer.provideMerge(log))
      const others = [secrets, senderOf(sent), webhookCursorsMemory, httpTransport] as const
      const built = yield* Layer.build(Layer.fresh(Layer.mergeAll(model, eventsMemory, ...others)))
      const known = built.pipe(
        Context.pick(
          Commands,
          Log,
          Transport,
          WebhookModel,
          PublishedEvents,
          WebhookCursors,
          WebhookSecrets,
          WebhookSender,
        ),
        Context.add(WebhookLimit, limit),
        Context.add(PublishedNames, [["blob-storage", { blob_stored: {} }]]),
      )
      const routes = appOf(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers)), known)
      const service = { name: "operations", api: Api, routes }
      const { fetch } = yield* serveHttp([service], { authenticate })
      const run = Effect.runPromiseWith(built)
      let published = 0
      let commands = 0
      yield* Effect.promise(() =>
        body({
          sent,
          ask: async (who, method, path, input, more = {}) => {
            const answer = await fetch(path, {
              method,
              headers: {
                ...(who === "nobody" ? {} : { authorization: `Bearer ${who}` }),
                ...(input === undefined ? {} : { "content-type": "application/json" }),
                ...more,
              },
              ...(input === undefined ? {} : { body: JSON.stringify(input) }),
            })
            const text = await answer.text()
            const { status, headers } = answer
            return { status, headers, body: text === "" ? {} : JSON.parse(text) }
          },
          command: (id, command) => run(commanded(`c${commands++}`, id, command)),
          publish: (count) =>
            run(tell(...Array.from({ length: count }, () => publishedEvent(++published)))),
          logText: () =>
            run(
              Effect.map(
                Effect.flatMap(Log, (log) => Stream.runCollect(log.read(""))),
                (all) => JSON.stringify(all.map(({ commit }) => commit)),
              ),
            ),
        }),
      )
    }).pipe(Effect.scoped),
  )
