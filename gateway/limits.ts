/** Limits of requests, and the annotations of endpoints that the door reads. */
import { Context } from "effect"
import type { Settings } from "#schemas/settings.ts"

/**
 * Maximum length of path and query, in characters: twice the longest cursor and query of the
 * documents.
 */
export const url_length_max = 8192
/** Maximum length of an inbound `X-Request-Id`; longer ones are truncated. */
export const correlation_id_length_max = 128
/** Maximum length of an `Idempotency-Key`, as in other services. */
export const idempotency_key_length_max = 255
/**
 * Maximum length of an `X-Auth-Token`. Keystone's tokens have about 200 characters; Keystone
 * disconnects at 70,000.
 */
export const openstack_token_length_max = 4096
/** Positions of the log are exact integers up to 2^53. */
export const position_digits_max = 16

/** Maximum body size of operators' and nodes' commands and of webhook commands. */
export const command_bytes_max = 64 * 1024

/**
 * Maximum size of the request body in bytes. A larger one is rejected with 413, before it is read
 * if possible. A limit for a content type applies only to the declared length.
 */
export type BodyLimitOf = (settings: Settings, content_type?: string) => number

export const BodyLimit = Context.Reference<BodyLimitOf>("gateway/BodyLimit", {
  defaultValue:
    () =>
    ({ blob }) =>
      blob.json_body_bytes_max,
})

/** The accepted content types of the request body, if they differ from the endpoint's payload. */
export const Accepts = Context.Reference<ReadonlyArray<string> | undefined>("gateway/Accepts", {
  defaultValue: () => undefined,
})

/** Whether the request or the response is a stream: its deadline then counts from the last byte. */
export const Streamed = Context.Reference<boolean>("gateway/Streamed", {
  defaultValue: () => false,
})

/**
 * How an endpoint uses tickets of event streams: one that `accepts` them takes the query parameter
 * `ticket` instead of a token, one that `issues` them creates them.
 */
export const Ticketed = Context.Reference<"accepts" | "issues" | undefined>("gateway/Ticketed", {
  defaultValue: () => undefined,
})

/**
 * Whether the response has no deadline. Deadlines then apply only while the request body arrives,
 * and while the client does not read. The response ends when the client disconnects or the server
 * stops.
 */
export const Unhurried = Context.Reference<boolean>("gateway/Unhurried", {
  defaultValue: () => false,
})

/**
 * Why an endpoint's requests are idempotent without an `Idempotency-Key`; undefined if the key
 * matters. Source: decision 0181.
 */
export const KeyNotNeeded = Context.Reference<string | undefined>("gateway/KeyNotNeeded", {
  defaultValue: () => undefined,
})
