/**
 * Users of the bus for subscribers that do not trust each other. Each has consumers and an inbox
 * that no other user can name. Permissions of nats-server match whole tokens, so a named
 * subscriber's consumers have names out of a fixed list, not names that begin with its own.
 *
 * Source: decision 0174.
 */
import { events_stream } from "#adapters/published/stream-name.ts"

/** A named subscriber as nats.conf has it; `password` is text of that file. */
export interface NamedSubscriber {
  readonly name: string
  readonly password: string
}

/** Consumers of a named subscriber beside the one that has its name. */
const more_consumers = 9

/** Its login. */
export const userOf = (name: string) => `subscriber-${name}`

/** What its client must set as inbox prefix. */
export const inboxOf = (name: string) => `_INBOX_${name}`

/** Every consumer that a named subscriber may have: `billing`, `billing-1` to `billing-9`. */
export const consumersOf = (name: string): ReadonlyArray<string> => [
  name,
  ...Array.from({ length: more_consumers }, (_, index) => `${name}-${index + 1}`),
]

/** All that concerns one consumer of the mirror. */
const requestsFor = (consumer: string): ReadonlyArray<string> => [
  `$JS.API.CONSUMER.CREATE.${events_stream}.${consumer}`,
  `$JS.API.CONSUMER.CREATE.${events_stream}.${consumer}.>`,
  `$JS.API.CONSUMER.DURABLE.CREATE.${events_stream}.${consumer}`,
  `$JS.API.CONSUMER.INFO.${events_stream}.${consumer}`,
  `$JS.API.CONSUMER.DELETE.${events_stream}.${consumer}`,
  `$JS.API.CONSUMER.MSG.NEXT.${events_stream}.${consumer}`,
  `$JS.ACK.${events_stream}.${consumer}.>`,
]

const of_all = ["$JS.API.INFO", `$JS.API.STREAM.INFO.${events_stream}`]

/** The line of a named subscriber's user. */
export const subscriberUserText = ({ name, password }: NamedSubscriber) => {
  const allowed = [...of_all, ...consumersOf(name).flatMap(requestsFor)]
  return `\
      { user: "${userOf(name)}", password: ${password}, permissions: {
        publish: { allow: ${JSON.stringify(allowed)} }
        subscribe: { allow: ["${inboxOf(name)}.>"] } } }`
}

/**
 * What the user whom everybody else shares is denied: consumers of named subscribers, and the
 * request whose subject names no consumer, so that its body could name one of theirs.
 */
export const deniedToOthers = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.length === 0
    ? []
    : [
        `$JS.API.CONSUMER.CREATE.${events_stream}`,
        ...names.flatMap(consumersOf).flatMap(requestsFor),
      ]
