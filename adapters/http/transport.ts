/** The gateway's `Transport` over Node's HTTP server. */
import { TLSSocket } from "node:tls"
import { Layer } from "effect"
import { clientCertificate } from "#adapters/identity/static.ts"
import { Transport } from "#gateway/transport.ts"
import { newIds, progressOf, sendDirectly, socketOf, uuidOf } from "#http"

export const httpTransport = Layer.succeed(Transport, {
  newId: newIds(),
  idOf: uuidOf,
  certificateOf: (source) => {
    const socket = socketOf(source)
    return socket instanceof TLSSocket ? clientCertificate(socket) : undefined
  },
  addressOf: (source) => socketOf(source)?.remoteAddress ?? "",
  progressOf,
  hasten: sendDirectly,
})
