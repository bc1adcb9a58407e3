/** How a direct route refuses a request: with the rejections of the blob service. */
import { Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import { worded } from "#gateway/blob-storage/fault.ts"
import type { Exchange } from "#gateway/direct.ts"
import { Rejection } from "#schemas/blob-storage/rejection.ts"

const encode = Schema.encodeSync(Rejection)

const classOf = (cause: unknown) => Rejection.members.find((member) => cause instanceof member)

/** The status that a rejection's class carries for its endpoints. */
const statusOf = (rejection: Rejection) =>
  Number(classOf(rejection)?.ast.annotations?.httpApiStatus ?? 500)

/** Refuses the request with this rejection; the door completes it. */
export const reject = (
  exchange: Exchange,
  rejection: Rejection,
  headers: Readonly<Record<string, string>> = {},
) =>
  exchange.refuse(
    HttpServerResponse.jsonUnsafe(encode(rejection), { status: statusOf(rejection), headers }),
  )

/** The rejection that was thrown, or that the engine's fault amounts to. */
const rejectionOf = (cause: unknown) =>
  // Only instances of the union's members have a class among them.
  classOf(cause) === undefined ? worded(faultOf(cause)) : (cause as Rejection)

/** Refuses the request because of what was thrown: a rejection, or a fault of the engine. */
export const rejectCause = (exchange: Exchange, cause: unknown) =>
  reject(exchange, rejectionOf(cause))

/** Refuses the request where a rejection was thrown; anything else is a defect. */
export const rejectThrown = (exchange: Exchange, cause: unknown) => {
  if (classOf(cause) === undefined) exchange.fail(cause)
  else rejectCause(exchange, cause)
}

/** The body of a rejection that follows a head of 200. */
export const bodyOf = (exchange: Exchange, cause: unknown) =>
  exchange.complete(encode(rejectionOf(cause)))

/** Continues with the engine's answer; its fault is a rejection, an error of ours a defect. */
export const after = <A>(exchange: Exchange, answer: Promise<A>, next: (answer: A) => void) => {
  answer.then(next, (cause) => rejectCause(exchange, cause)).catch((cause) => exchange.fail(cause))
}
