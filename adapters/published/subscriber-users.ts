/**
 * Users of the bus for mutually untrusted subscribers. Each has consumers and an inbox that no
 * other user can access. Permissions of nats-server match whole tokens, so a named subscriber's
 * consumers have names from a fixed list instead of a prefix.
 *
 * Source: decision 0174.
 */
import { events_stream } from "#adapters/published/stream-name.ts"

/** A named subscriber in nats.conf; `password` is literal text of that file. */
export interface NamedSubscriber {
  readonly name: string
  readonly password: string
}

/** Additional consumers of a named subscriber, not counting the one with its name. */
const more_consumers = 9

/** User name of a named subscriber. */
export const userOf = (name: string) => `subscriber-${name}`

/** Inbox prefix that its client must set. */
export const inboxOf = (name: string) => `_INBOX_${name}`

/** Every consumer that a named subscriber may have: `billing`, `billing-1` to `billing-9`. */
export const consumersOf = (name: string): ReadonlyArray<string> => [
  name,
  ...Array.from({ length: more_consumers }, (_, index) => `${name}-${index + 1}`),
]

/** Subjects of all requests about one consumer of the mirror. */
const requestsFor = (consumer: string): ReadonlyArray<string> => [
  `$JS.API.CONSUMER.CREATE.${events_stream}.${consumer}`,
  `$JS.API.CONSUMER.CREATE.${events_stream}.${consumer}.>`,
  `$JS.API.CONSUMER.DURABLE.CREATE.${events_stream}.${consumer}`,
  `$JS.API.CONSUMER.INFO.${events_stream}.${consumer}`,
  `$JS.API.CONSUMER.DELETE.${events_stream}.${consumer}`,
  `$JS.API.CONSUMER.MSG.NEXT.${events_stream}.${consumer}`,
  `$JS.ACK.${events_stream}.${consumer}.>`,
]

const common_requests = ["$JS.API.INFO", `$JS.API.STREAM.INFO.${events_stream}`]

/** The line of a named subscriber's user in nats.conf. */
export const subscriberUserText = ({ name, password }: NamedSubscriber) => {
  const allowed = [...common_requests, ...consumersOf(name).flatMap(requestsFor)]
  return `\
      { user: "${userOf(name)}", password: ${password}, permissions: {
        publish: { allow: ${JSON.stringify(allowed)} }
        subscribe: { allow: ["${inboxOf(name)}.>"] } } }`
}

/**
 * Subjects denied to the shared user: consumers of named subscribers, and the request without a
 * consumer in its subject, because its body could name one of theirs.
 */
export const deniedToOthers = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.length === 0
    ? []
    : [
        `$JS.API.CONSUMER.CREATE.${events_stream}`,
        ...names.flatMap(consumersOf).flatMap(requestsFor),
      ]
