/** `raw node:http`: a process that answers every request with the same bytes and headers. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

/** What the gateway answered once. */
export interface Reply {
  /** Name, value, name, value, ... without those that node writes itself. */
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

const serve = ({ headers, body }: Reply) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, [...headers])
    response.end(body)
  })
  server.listen(0, "127.0.0.1", () => {
    // A TCP server that listens has an address with a port.
    const { port } = server.address() as AddressInfo
    process.send?.({ url: `http://127.0.0.1:${port}/` })
  })
}

process.on("disconnect", () => process.exit(0))
process.once("message", serve)
