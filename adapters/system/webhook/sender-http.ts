/**
 * Webhooks over HTTP: one signed POST per attempt. Redirects are not followed, responses are read
 * up to a limit, and addresses are checked by the rule.
 *
 * Source: Standard Webhooks 1.0.0; CloudEvents 1.0.2, HTTP binding, structured mode.
 */
import { Clock, Effect, Layer, Redacted } from "effect"
import { Agent, buildConnector, type Dispatcher, request } from "undici"
import {
  type Outcome,
  type Parcel,
  WebhookSecrets,
  WebhookSender,
} from "#actors/system/webhooks/sender.ts"
import {
  type AddressRule,
  addressRule,
  guardedLookup,
  isRefusedHost,
  type Resolve,
  refusedAddress,
} from "#adapters/outside/address.ts"
import { signedHeaders } from "#adapters/system/webhook/signature.ts"
import type { Settings } from "#schemas/settings.ts"
import { detail_chars_max } from "#schemas/system/webhook.ts"

/** Maximum bytes read of a response, whose content is ignored. */
const response_bytes_max = 16 * 1024
/** Idle timeout of a connection in milliseconds. */
const idle_ms_max = 10_000

/** A connector that refuses disallowed addresses. */
const connector = (isAllowed: AddressRule, timeout: number, resolve?: Resolve) => {
  const connect = buildConnector({
    timeout,
    rejectUnauthorized: true,
    allowH2: false,
    lookup: guardedLookup(isAllowed, resolve),
  })
  const guardedConnect: buildConnector.connector = (options, callback) => {
    // Address literals are not looked up.
    const { hostname } = options
    if (isRefusedHost(isAllowed, hostname)) callback(refusedAddress(hostname), null)
    else connect(options, callback)
  }
  return guardedConnect
}

/** RFC 9110 §10.2.3: seconds or a date. Undefined if invalid. */
export const retryAfterMs = (text: string | undefined, now_ms: number) => {
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now_ms)
}

/** Reads a response to its end or to the limit; leaving the loop closes the rest. */
const discardBody = async (body: Dispatcher.ResponseData["body"]) => {
  let bytes = 0
  for await (const chunk of body) {
    // Buffers, because no encoding is set.
    bytes += (chunk as Buffer).length
    if (bytes > response_bytes_max) break
  }
}

const codeOf = (error: unknown) => {
  if (!(error instanceof Error)) return "UNKNOWN"
  if (error.name === "TimeoutError" || error.name === "AbortError") return "the deadline passed"
  return "code" in error && typeof error.code === "string" ? error.code : error.name
}

/** Describes a failure, without any content of the receiver's response except its status. */
const failureOutcome = (error: unknown): Outcome => ({
  is_delivered: false,
  detail: `No response: ${codeOf(error)}.`.slice(0, detail_chars_max),
})

const outcomeOf = (status: number, retry_after: string | undefined, now_ms: number): Outcome => {
  if (status >= 200 && status < 300) {
    return { is_delivered: true, status, detail: `It returned status ${status}.` }
  }
  const is_redirect = status >= 300 && status < 400
  const note = is_redirect ? ", and redirects are not followed" : ""
  const delay_ms = retryAfterMs(retry_after, now_ms)
  return {
    is_delivered: false,
    status,
    detail: `It returned status ${status}${note}.`,
    ...(delay_ms === undefined ? {} : { retry_after_ms: delay_ms }),
  }
}

/** An event's id without dots, which are the delimiters of the signed content. */
const messageId = (id: string) => `evt_${id.replaceAll(".", "_")}`

/** The message of one attempt. */
const messageOf = (
  { event, sequence, secrets, webhook_id }: Parcel,
  { key_id, reveal }: WebhookSecrets["Service"],
  now_ms: number,
) => {
  const body = JSON.stringify(event)
  const usable = secrets.filter((secret) => secret.key_id === key_id)
  if (usable.length === 0) return undefined
  const texts = usable.map(({ version }) => Redacted.value(reveal(webhook_id, version)))
  const signed = { id: messageId(event.id), timestamp: Math.floor(now_ms / 1000), body }
  const headers = {
    "content-type": "application/cloudevents+json; charset=utf-8",
    "user-agent": "almanac-webhooks/1",
    ...(sequence === undefined ? {} : { "almanac-sequence": String(sequence) }),
    ...signedHeaders(texts, signed),
  }
  return { body, headers }
}

const unknown_key: Outcome = {
  is_delivered: false,
  detail: "Its secret was encrypted with a key that this server does not have: rotate the secret.",
}

/** The sender for these settings; `resolve` replaces the system's name resolution. */
export const webhookSenderHttp = ({ webhooks }: Pick<Settings, "webhooks">, resolve?: Resolve) =>
  Layer.effect(
    WebhookSender,
    Effect.gen(function* () {
      const secrets = yield* WebhookSecrets
      const { allowed_networks, allow_http, timeout_seconds } = webhooks
      const isAllowed = addressRule(allowed_networks)
      const deadline_ms = timeout_seconds * 1000
      const agent = yield* Effect.acquireRelease(
        Effect.sync(
          () =>
            // No limit per host: webhooks of several tenants may share one, and each is limited.
            new Agent({
              pipelining: 1,
              keepAliveTimeout: idle_ms_max,
              headersTimeout: deadline_ms,
              bodyTimeout: deadline_ms,
              allowH2: false,
              connect: connector(isAllowed, deadline_ms, resolve),
            }),
        ),
        (open_agent) => Effect.promise(() => open_agent.destroy()),
      )

      const refusal = (text: string) => {
        const url = new URL(text)
        if (url.protocol !== "https:" && !allow_http) return "an https URL is required"
        return isRefusedHost(isAllowed, url.hostname)
          ? "its address is loopback, private, link-local or reserved"
          : undefined
      }
      const send = Effect.fnUntraced(function* (parcel: Parcel) {
        const reason = refusal(parcel.url)
        if (reason !== undefined) {
          return { is_delivered: false, detail: `Not sent: ${reason}.` } satisfies Outcome
        }
        const now_ms = yield* Clock.currentTimeMillis
        const message = messageOf(parcel, secrets, now_ms)
        if (message === undefined) return unknown_key
        return yield* Effect.tryPromise({
          try: async (signal): Promise<Outcome> => {
            const response = await request(parcel.url, {
              method: "POST",
              dispatcher: agent,
              ...message,
              signal: AbortSignal.any([signal, AbortSignal.timeout(deadline_ms)]),
            })
            await discardBody(response.body)
            const retry_after = response.headers["retry-after"]
            return outcomeOf(response.statusCode, retry_after?.toString(), now_ms)
          },
          catch: failureOutcome,
        }).pipe(Effect.catch((outcome) => Effect.succeed(outcome)))
      })
      return WebhookSender.of({ send, refusal })
    }),
  )
