/** Limits of requests, and the annotations of endpoints that the door reads. */
import { Context } from "effect"
import type { Settings } from "#schemas/settings.ts"

/** Longest path and query, in characters: twice the longest cursor and query of the documents. */
export const url_length_max = 8192
/** Longest inbound `X-Request-Id` that is kept; the rest is cut off. */
export const correlation_id_length_max = 128
/** Longest `Idempotency-Key`, as in other services. */
export const idempotency_key_length_max = 255
/** Longest `X-Auth-Token`: Keystone's have some 200 characters; it disconnects at 70,000. */
export const openstack_token_length_max = 4096
/** Positions of the log are exact integers up to 2^53. */
export const position_digits_max = 16

/** Largest body of a command of operators, of nodes or about webhooks, such as a secret. */
export const command_bytes_max = 64 * 1024

/**
 * Largest request body in bytes; a larger one gets 413, unread if possible. A limit for a content
 * type bounds only the announced length.
 */
export type BodyLimitOf = (settings: Settings, content_type?: string) => number

export const BodyLimit = Context.Reference<BodyLimitOf>("gateway/BodyLimit", {
  defaultValue:
    () =>
    ({ blob }) =>
      blob.json_body_bytes_max,
})

/** The content types of a request body, if they are not those of the endpoint's payload. */
export const Accepts = Context.Reference<ReadonlyArray<string> | undefined>("gateway/Accepts", {
  defaultValue: () => undefined,
})

/** Whether the request or the response is a stream, whose deadline counts from the last byte. */
export const Streamed = Context.Reference<boolean>("gateway/Streamed", {
  defaultValue: () => false,
})

/**
 * How an endpoint uses tickets of event streams: `accepts` takes one from the query parameter
 * `ticket` in place of a token, `issues` makes them.
 */
export const Ticketed = Context.Reference<"accepts" | "issues" | undefined>("gateway/Ticketed", {
  defaultValue: () => undefined,
})

/**
 * Whether the response has no deadline: only the request body has one, and a client that does not
 * read. Such a response ends when its client disconnects, or the server stops.
 */
export const Unhurried = Context.Reference<boolean>("gateway/Unhurried", {
  defaultValue: () => false,
})

/**
 * Why an endpoint needs no `Idempotency-Key`: the request is idempotent. Undefined where a key
 * counts. Source: decision 0181.
 */
export const KeyNotNeeded = Context.Reference<string | undefined>("gateway/KeyNotNeeded", {
  defaultValue: () => undefined,
})
