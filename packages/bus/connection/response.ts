/**
 * Responses to requests over the bus. A response is published with the permissions of this process,
 * so a reply subject chosen by the requester could turn it into a commit, an event or a JetStream
 * request. Responses therefore go only to the inbox of the user who may send requests on that
 * subject; a test keeps `Msg.respond` out of the sources.
 *
 * Source: docs/decisions/0170.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"

/** First token of the inboxes of processes that use the server's own login. */
export const core_inbox = "_INBOX"

/** Suffix that a client appends to its inbox: one or two short tokens of letters and digits. */
const tail = /^[A-Za-z0-9]{1,64}(\.[A-Za-z0-9]{1,64})?$/

/** Subject of the response; undefined if the request's reply subject is not in that inbox. */
export const responseSubject = (inbox: string, { reply }: Pick<Msg, "reply">) => {
  const prefix = `${inbox}.`
  if (reply?.startsWith(prefix) !== true) return undefined
  const rest = reply.slice(prefix.length)
  return tail.test(rest) ? `${prefix}${rest}` : undefined
}

/**
 * Sends the response to the requester's inbox. No effect if the reply subject is not in it, or if
 * the connection is closed: the request times out, and the requester retries.
 */
export const sendResponse = (
  connection: NatsConnection,
  inbox: string,
  message: Msg,
  text: string,
) => {
  const subject = responseSubject(inbox, message)
  if (subject !== undefined && !connection.isClosed()) connection.publish(subject, text)
}
