/** A single delivery attempt over real HTTP, to receivers with every kind of response. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import { parallel_max } from "#actors/system/webhooks/backlog.ts"
import { type Parcel, WebhookSecrets, WebhookSender } from "#actors/system/webhooks/sender.ts"
import type { Resolve } from "#adapters/outside/address.ts"
import { secretsWith } from "#adapters/system/webhook/key.ts"
import { retryAfterMs, webhookSenderHttp } from "#adapters/system/webhook/sender-http.ts"
import { settingsWith, until } from "../../world/http.ts"
import { publishedEvent } from "../../world/system/events-served.ts"

interface Got {
  readonly url: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A receiver on loopback that records the requests. */
const receiver = (answer: Answer) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const got: Array<Got> = []
      const server = createServer((request, response) => {
        let body = ""
        request.setEncoding("utf8").on("data", (text: string) => {
          body += text
        })
        request.on("end", () => {
          got.push({ url: request.url ?? "", headers: request.headers, body })
          answer(response, request)
        })
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      // The address of a listening server.
      const { port } = server.address() as AddressInfo
      return { got, port, server }
    }),
    ({ server }) =>
      Effect.promise(() => {
        server.closeAllConnections()
        return new Promise((closed) => server.close(closed))
      }),
  )

const secrets = secretsWith(Buffer.alloc(32, 7))
const { event } = publishedEvent(6, { data: { text: "ünïcode" } })

const parcel = (url: string, more: Partial<Parcel> = {}): Parcel => ({
  webhook_id: "w1",
  url,
  sequence: 4,
  event,
  secrets: [{ version: 1, key_id: secrets.key_id }],
  ...more,
})

const open = { allowed_networks: ["127.0.0.0/8"], allow_http: true, timeout_seconds: 1 }

const senderOf = (webhooks: object, resolve?: Resolve) => {
  const settings = settingsWith({ webhooks })
  return webhookSenderHttp(settings, resolve).pipe(
    Layer.provide(Layer.succeed(WebhookSecrets, secrets)),
  )
}

/** The outcome of an attempt when its receiver responds like this. */
const tried = (answer: Answer, webhooks: object = open, more: Partial<Parcel> = {}) =>
  Effect.gen(function* () {
    const { got, port } = yield* receiver(answer)
    const { send } = yield* WebhookSender
    const outcome = yield* send(parcel(`http://127.0.0.1:${port}/hook?x=1`, more))
    return { got, outcome }
  }).pipe(Effect.scoped, Effect.provide(senderOf(webhooks)))

const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (response) =>
    response.writeHead(code, headers).end("whatever")

describe("a try", () => {
  it.live("is a POST of the event that the Standard Webhooks library accepts", () =>
    Effect.gen(function* () {
      const { got, outcome } = yield* tried(status(204))
      assert.deepInclude(outcome, { is_delivered: true, status: 204 })
      assert.lengthOf(got, 1)
      const [{ url, headers, body } = { url: "", headers: {}, body: "" }] = got
      assert.equal(url, "/hook?x=1")
      assert.match(headers["content-type"] ?? "", /^application\/cloudevents\+json/)
      assert.equal(headers["almanac-sequence"], "4")
      assert.equal(headers["webhook-id"], "evt_6_0")
      const secret = Redacted.value(secrets.reveal("w1", 1))
      // These headers are strings, like ours.
      const text = headers as Record<string, string>
      assert.deepEqual(new Webhook(secret).verify(body, text), event)
      for (const [webhook_id, version] of [
        ["w1", 2],
        ["w2", 1],
      ] as const) {
        const other = Redacted.value(secrets.reveal(webhook_id, version))
        assert.throws(() => new Webhook(other).verify(body, text))
      }
      assert.throws(() => new Webhook(secret).verify(`${body} `, text))
    }),
  )

  it.live("is signed by both secrets while one takes the place of the other", () =>
    Effect.gen(function* () {
      const both = [2, 1].map((version) => ({ version, key_id: secrets.key_id }))
      const { got } = yield* tried(status(200), open, { secrets: both })
      const [{ headers, body } = { headers: {}, body: "" }] = got
      for (const version of [1, 2]) {
        const secret = Redacted.value(secrets.reveal("w1", version))
        new Webhook(secret).verify(body, headers as Record<string, string>)
      }
    }),
  )

  it.live("is not made where its secret is of another key", () =>
    Effect.gen(function* () {
      const { got, outcome } = yield* tried(status(200), open, {
        secrets: [{ version: 1, key_id: "another" }],
      })
      assert.isFalse(outcome.is_delivered)
      assert.match(outcome.detail, /rotate the secret/)
      assert.lengthOf(got, 0)
    }),
  )

  for (const code of [300, 400, 401, 404, 410, 500, 503]) {
    it.live(`that is answered ${code} is no delivery`, () =>
      Effect.gen(function* () {
        const { outcome } = yield* tried(status(code))
        assert.deepInclude(outcome, { is_delivered: false, status: code })
      }),
    )
  }

  it.live("follows no redirect", () =>
    Effect.gen(function* () {
      const other = yield* receiver(status(200))
      const location = `http://127.0.0.1:${other.port}/`
      const { outcome } = yield* tried(status(307, { location }))
      assert.deepInclude(outcome, { is_delivered: false, status: 307 })
      assert.lengthOf(other.got, 0)
    }).pipe(Effect.scoped),
  )

  it.live("says when its receiver wants to be asked again", () =>
    Effect.gen(function* () {
      const { outcome } = yield* tried(status(429, { "retry-after": "120" }))
      assert.equal(outcome.retry_after_ms, 120_000)
    }),
  )

  for (const [what, answer] of [
    ["answers too late", () => undefined],
    ["stalls in the middle", (response) => response.writeHead(200).write("some")],
  ] as ReadonlyArray<readonly [string, Answer]>) {
    it.live(`ends at its deadline where the receiver ${what}`, () =>
      Effect.gen(function* () {
        const { outcome, got } = yield* tried(answer)
        assert.isFalse(outcome.is_delivered)
        assert.equal(outcome.detail, "No response: the deadline passed.")
        assert.lengthOf(got, 1)
      }),
    )
  }

  it.live("waits for none of another webhook, whose receiver at the same host stalls", () =>
    Effect.gen(function* () {
      const { got, port } = yield* receiver((response, { url }) => {
        if (url === "/good") response.writeHead(204).end()
      })
      const { send } = yield* WebhookSender
      const to = (path: string, webhook_id: string) =>
        send(parcel(`http://127.0.0.1:${port}${path}`, { webhook_id }))
      let ended = 0
      const stall = Effect.tap(to("/stalls", "w1"), () => Effect.sync(() => ended++))
      const stalled = Array.from({ length: parallel_max }, () => stall)
      const stalling = yield* Effect.forkScoped(Effect.all(stalled, { concurrency: "unbounded" }))
      yield* Effect.promise(() => until(() => got.length >= parallel_max))
      assert.isTrue((yield* to("/good", "w2")).is_delivered)
      assert.equal(ended, 0)
      yield* Fiber.interrupt(stalling)
    }).pipe(Effect.scoped, Effect.provide(senderOf({ ...open, timeout_seconds: 10 }))),
  )

  it.live("is no delivery where the answer is cut off", () =>
    Effect.gen(function* () {
      const { outcome } = yield* tried((response) => {
        response.writeHead(200, { "content-length": "100" }).write("some")
        setImmediate(() => response.destroy())
      })
      assert.isFalse(outcome.is_delivered)
    }),
  )

  it.live("reads no more of an answer than a bound, however much comes", () =>
    Effect.gen(function* () {
      const { outcome } = yield* tried((response) => {
        const more = () => {
          while (!response.destroyed && response.write("x".repeat(10_000)));
          if (!response.destroyed) response.once("drain", more)
        }
        response.writeHead(200)
        more()
      })
      assert.isTrue(outcome.is_delivered)
    }),
  )
})

describe("where a try goes", () => {
  for (const [what, webhooks, url] of [
    ["to loopback", { allow_http: true }, "http://127.0.0.1:1/"],
    ["to loopback by a number", { allow_http: true }, "http://2130706433:1/"],
    ["to loopback in IPv6", { allow_http: true }, "http://[::1]:1/"],
    ["to loopback in disguise", { allow_http: true }, "http://[::ffff:7f00:1]:1/"],
    ["to metadata", { allow_http: true }, "http://169.254.169.254/latest/"],
    ["without TLS", { allowed_networks: ["127.0.0.0/8"] }, "http://127.0.0.1:1/"],
  ] as const) {
    it.live(`not ${what}`, () =>
      Effect.gen(function* () {
        const { send, refusal } = yield* WebhookSender
        assert.isDefined(refusal(url))
        assert.match((yield* send(parcel(url))).detail, /^Not sent: /)
      }).pipe(Effect.provide(senderOf(webhooks))),
    )
  }

  it.live("not to a name of a loopback address, even if its DNS record changes", () =>
    Effect.gen(function* () {
      const { got, port } = yield* receiver(status(200))
      let requests = 0
      const resolve: Resolve = (_, answer) => {
        requests++
        answer(null, [{ address: "127.0.0.1", family: 4 }])
      }
      const outcome = yield* Effect.flatMap(WebhookSender, ({ send }) =>
        send(parcel(`http://hook.example:${port}/`)),
      ).pipe(Effect.provide(senderOf({ allow_http: true, timeout_seconds: 1 }, resolve)))
      assert.equal(outcome.detail, "No response: ERR_ADDRESS_REFUSED.")
      assert.isAbove(requests, 0)
      assert.lengthOf(got, 0)
    }).pipe(Effect.scoped),
  )

  it.live("to a name that is looked up for each connection, and not once more", () =>
    Effect.gen(function* () {
      const { got, port, server } = yield* receiver(status(200))
      let connections = 0
      server.on("connection", () => connections++)
      let requests = 0
      const resolve: Resolve = (_, answer) => {
        requests++
        answer(null, [{ address: "127.0.0.1", family: 4 }])
      }
      const sending = Effect.gen(function* () {
        const { send } = yield* WebhookSender
        const url = `http://hook.example:${port}/`
        return [yield* send(parcel(url)), yield* send(parcel(url))]
      })
      const outcomes = yield* Effect.provide(sending, senderOf(open, resolve))
      assert.isTrue(outcomes.every(({ is_delivered }) => is_delivered))
      assert.equal(got[0]?.headers.host, `hook.example:${port}`)
      assert.deepEqual([requests, got.length], [connections, 2])
    }).pipe(Effect.scoped),
  )
})

describe("Retry-After", () => {
  const now = Date.UTC(2026, 10, 22)
  for (const [text, ms] of [
    ["0", 0],
    ["7", 7000],
    [new Date(now + 90_000).toUTCString(), 90_000],
    [new Date(now - 90_000).toUTCString(), 0],
    ["soon", undefined],
    ["-1x", undefined],
    [undefined, undefined],
  ] as const) {
    it(`${text} is ${ms}`, () => assert.equal(retryAfterMs(text, now), ms))
  }
})
