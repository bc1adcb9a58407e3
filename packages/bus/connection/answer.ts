/**
 * Answers to requests over the bus. An answer is published with the permissions of this process, so
 * a reply subject that the asker chose could make it a commit, an event or a request to JetStream.
 * Answers therefore go to the inbox of the user who may ask on that subject alone; a test
 * keeps `Msg.respond` out of the sources.
 *
 * Source: docs/decisions/0170.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"

/** First token of the inboxes of processes that use the server's own login. */
export const core_inbox = "_INBOX"

/** What a client puts behind its inbox: one or two tokens of letters and digits, bounded. */
const tail = /^[A-Za-z0-9]{1,64}(\.[A-Za-z0-9]{1,64})?$/

/** Where the answer goes; undefined if the request names no subject in that inbox. */
export const answerSubject = (inbox: string, { reply }: Pick<Msg, "reply">) => {
  const prefix = `${inbox}.`
  if (reply?.startsWith(prefix) !== true) return undefined
  const rest = reply.slice(prefix.length)
  return tail.test(rest) ? `${prefix}${rest}` : undefined
}

/**
 * Sends the answer to the asker's inbox. Without effect if the request names no subject in it, or
 * if the connection is closed: the asker's request times out, and it asks again.
 */
export const answer = (connection: NatsConnection, inbox: string, message: Msg, text: string) => {
  const subject = answerSubject(inbox, message)
  if (subject !== undefined && !connection.isClosed()) connection.publish(subject, text)
}
