/**
 * A load client in its own process: keep-alive connections, each with one request in flight, over
 * plain sockets, because an HTTP library would be slower than the server it measures.
 */
import { connect, type Socket } from "node:net"
import { type Round, summary } from "../harness/round.ts"

export interface Load {
  readonly url: string
  readonly token: string
  readonly connections: number
  readonly seconds: number
}

export type LoadAnswer = { readonly round: Round } | { readonly failed: string }

const head_end = Buffer.from("\r\n\r\n")
const status_ok = "HTTP/1.1 200 "
const length_header = /\r\ncontent-length: *(\d+)\r\n/i

/** Bytes of the first response in `data`, or undefined while its head is incomplete. */
const responseBytes = (data: Buffer): number | undefined => {
  const end = data.indexOf(head_end)
  if (end < 0) return undefined
  const head = data.toString("latin1", 0, end + 2)
  if (!head.startsWith(status_ok)) throw new Error(`answered ${head.split("\r\n")[0]}`)
  const length = length_header.exec(head)?.[1]
  if (length === undefined) throw new Error("answered without Content-Length")
  return end + head_end.length + Number(length)
}

const requestOf = ({ url, token }: Load) => {
  const { host, pathname, search } = new URL(url)
  const lines = [
    `GET ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${token}`,
  ]
  return Buffer.from(`${lines.join("\r\n")}\r\nAccept: application/json\r\n\r\n`)
}

/** Sends requests over one connection until `end`; appends latencies in milliseconds to `seen`. */
const keepAsking = (socket: Socket, request: Buffer, end: number, seen: Array<number>) =>
  new Promise<void>((resolve, reject) => {
    let sent = 0
    let rest: Buffer = Buffer.alloc(0)
    const ask = () => {
      sent = performance.now()
      socket.write(request)
    }
    const take = (chunk: Buffer) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      const bytes = responseBytes(rest)
      if (bytes === undefined || rest.length < bytes) return
      if (rest.length > bytes) throw new Error("more than one answer to one request")
      rest = Buffer.alloc(0)
      const now = performance.now()
      seen.push(now - sent)
      if (now < end) ask()
      else socket.end(resolve)
    }
    socket.setNoDelay()
    socket.on("error", reject)
    socket.on("close", () => reject(new Error("the server closed a connection")))
    socket.on("data", (chunk) => {
      try {
        take(chunk)
      } catch (cause) {
        socket.destroy()
        reject(cause)
      }
    })
    socket.on("connect", ask)
  })

const measure = async (load: Load): Promise<Round> => {
  const { hostname, port } = new URL(load.url)
  const request = requestOf(load)
  const latencies: Array<number> = []
  const began = performance.now()
  const end = began + load.seconds * 1000
  const lanes = Array.from({ length: load.connections }, () =>
    keepAsking(connect(Number(port), hostname), request, end, latencies),
  )
  await Promise.all(lanes)
  return summary(latencies, (performance.now() - began) / 1000)
}

const answer = (message: LoadAnswer) => process.send?.(message, () => process.exit(0))

process.once("message", (load: Load) => {
  measure(load).then(
    (round) => answer({ round }),
    (cause) => answer({ failed: String(cause) }),
  )
})
