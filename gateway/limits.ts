/** What an endpoint takes: annotations that the front door reads, and bounds of every request. */
import { Context } from "effect"
import type { Settings } from "#schemas/settings.ts"

/** Longest path and query, in characters: twice the longest cursor and query of the documents. */
export const url_length_max = 8192
/** Longest inbound `X-Request-Id` that is kept; the rest is cut off. */
export const correlation_id_length_max = 128
/** Longest `Idempotency-Key`: what other services take, and a log entry's worth. */
export const idempotency_key_length_max = 255
/** Longest `X-Auth-Token`: Keystone's have some 200, and at 70,000 it hangs up. */
export const openstack_token_length_max = 4096
/** Positions of the log are exact integers up to 2^53. */
export const position_digits_max = 16

/** What a command of operators, of nodes or about webhooks may have: the largest is a secret's. */
export const command_bytes_max = 64 * 1024

/**
 * Largest request body in bytes; a larger one is answered 413, unread where possible. What is asked
 * for a content type bounds only what a body of it announces.
 */
export type BodyLimitOf = (settings: Settings, content_type?: string) => number

export const BodyLimit = Context.Reference<BodyLimitOf>("gateway/BodyLimit", {
  defaultValue:
    () =>
    ({ blob }) =>
      blob.json_body_bytes_max,
})

/** The content types of a request body where the endpoint's payload does not say them. */
export const Accepts = Context.Reference<ReadonlyArray<string> | undefined>("gateway/Accepts", {
  defaultValue: () => undefined,
})

/** Whether the request or the answer is a stream: its deadline counts from the last byte moved. */
export const Streamed = Context.Reference<boolean>("gateway/Streamed", {
  defaultValue: () => false,
})

/**
 * What an endpoint has to do with tickets of event streams: `accepts` takes one from the query
 * parameter `ticket` in place of a token, `issues` makes them.
 */
export const Ticketed = Context.Reference<"accepts" | "issues" | undefined>("gateway/Ticketed", {
  defaultValue: () => undefined,
})

/**
 * Whether the answer may take as long as it takes: the request's own body has a deadline, and a
 * client that does not take what is there. Such an answer ends with its client, or with the server.
 */
export const Unhurried = Context.Reference<boolean>("gateway/Unhurried", {
  defaultValue: () => false,
})

/**
 * Why an endpoint needs no `Idempotency-Key`: sent twice, the request leaves what it leaves when it
 * is sent once. Undefined where a key counts. Source: decision 0181.
 */
export const KeyNotNeeded = Context.Reference<string | undefined>("gateway/KeyNotNeeded", {
  defaultValue: () => undefined,
})
