/** How a hot route ends badly: by the rejections of the plain route, which words them. */
import { Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import { worded } from "#gateway/blob-storage/fault.ts"
import type { HotVisit } from "#gateway/direct.ts"
import { Rejection } from "#schemas/blob-storage/rejection.ts"

const encode = Schema.encodeSync(Rejection)

/** The status that a rejection's class carries for its endpoints. */
const statusOf = (rejection: Rejection) => {
  const known = Rejection.members.find((member) => rejection instanceof member)
  return Number(known?.ast.annotations?.httpApiStatus ?? 500)
}

/** Answers with the rejection; the front door completes it. */
export const reject = (visit: HotVisit, rejection: Rejection) =>
  visit.refuse(HttpServerResponse.jsonUnsafe(encode(rejection), { status: statusOf(rejection) }))

/** Answers what the engine threw. */
export const rejectFault = (visit: HotVisit, cause: unknown) =>
  reject(visit, worded(faultOf(cause)))

/** Goes on with what the engine answers; its fault is a rejection, ours a defect. */
export const after = <A>(visit: HotVisit, asked: Promise<A>, next: (answer: A) => void) => {
  asked.then(next, (cause) => rejectFault(visit, cause)).catch(visit.fail)
}
