/**
 * Connections that another thread of this process had first: their requests come to Node's server,
 * and what that thread has said of the first of them counts here. Source: decision 0168.
 */
import type { IncomingMessage, Server } from "node:http"
import type { Socket } from "node:net"
import { HttpServerResponse } from "effect/http"
import type { Preface, RefusalSaid } from "#adapters/blob-storage/worker/message.ts"
import type { HotRefusal } from "#gateway/direct.ts"
import type { FrontDoor } from "#gateway/door.ts"
import type { Lane } from "./lane.ts"

/** A refusal in the form that the front door has it in. */
const refusalOf = (said: RefusalSaid): HotRefusal => {
  if ("detail" in said) return said
  const { status, headers, text } = said
  return HttpServerResponse.text(text, { status, headers, contentType: "application/json" })
}

export interface Adoptions {
  /** Takes a connection over, with all that is still to be read of it. */
  readonly adopt: (socket: Socket, preface: Preface) => void
  /** Whether a hot route of that thread had this request, and told the front door of its end. */
  readonly wasTried: (request: IncomingMessage) => boolean
}

export const adoptions = (
  server: Server,
  { pass }: Pick<Lane, "pass">,
  { refuse }: Pick<FrontDoor, "refuse">,
): Adoptions => {
  const firsts = new WeakMap<Socket, Preface>()
  return {
    adopt: (socket, preface) => {
      pass(socket)
      firsts.set(socket, preface)
      server.emit("connection", socket)
    },
    wasTried: (request) => {
      const first = firsts.get(request.socket)
      if (first === undefined) return false
      firsts.delete(request.socket)
      if (first.refusal) refuse(request, refusalOf(first.refusal))
      return first.is_tried
    },
  }
}
