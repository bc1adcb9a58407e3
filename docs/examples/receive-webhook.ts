/**
 * A receiver of webhooks: takes what is signed by its secret, once each, and prints it.
 *
 *   WEBHOOK_SECRET=whsec_... node docs/examples/receive-webhook.ts [port]
 *
 * The secret may be two with a comma between them, for as long as one takes the place of the other.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingHttpHeaders } from "node:http"

/** Events are at most as large as a commit, in bytes. */
const body_bytes_max = 1024 * 1024
/** Seconds that the sender's clock may differ from ours; what is older may be a replay. */
const tolerance_s = 300

const keys = (process.env.WEBHOOK_SECRET ?? "")
  .split(",")
  .map((secret) => Buffer.from(secret.trim().replace(/^whsec_/, ""), "base64"))
// With an empty key anybody could sign.
if (keys.some(({ length }) => length < 24)) throw new Error("WEBHOOK_SECRET is no secret.")

/** Whether one of the message's signatures is one of ours, and it is fresh. */
const isGenuine = (headers: IncomingHttpHeaders, body: string) => {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": given } = headers
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= tolerance_s)) return false
  const wanted = keys.map((key) =>
    createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64"),
  )
  return String(given)
    .split(" ")
    .some((one) =>
      wanted.some((good) => {
        const [ours, theirs] = [Buffer.from(`v1,${good}`), Buffer.from(one)]
        return ours.length === theirs.length && timingSafeEqual(ours, theirs)
      }),
    )
}

// A program that acts on events keeps these together with what it did, in one transaction.
const seen = new Set<string>()

const server = createServer((request, response) => {
  let body = ""
  request.setEncoding("utf8").on("data", (text: string) => {
    body += text
    if (body.length > body_bytes_max) request.destroy()
  })
  request.on("end", () => {
    if (!isGenuine(request.headers, body)) return response.writeHead(401).end()
    const id = String(request.headers["webhook-id"])
    if (!seen.has(id)) console.log(JSON.stringify(JSON.parse(body)))
    seen.add(id)
    response.writeHead(204).end()
  })
})

server.listen(Number(process.argv[2] ?? 9798), "127.0.0.1")
process.once("SIGTERM", () => process.exit(0))
