/** `raw node:http`: a process that responds to every request with the same bytes and headers. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

/** A response of the gateway. */
export interface Reply {
  /** Name, value, name, value, ... without the headers that Node writes itself. */
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

const serve = ({ headers, body }: Reply) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, [...headers])
    response.end(body)
  })
  server.listen(0, "127.0.0.1", () => {
    // The address of a listening TCP server includes a port.
    const { port } = server.address() as AddressInfo
    process.send?.({ url: `http://127.0.0.1:${port}/` })
  })
}

process.on("disconnect", () => process.exit(0))
process.once("message", serve)
