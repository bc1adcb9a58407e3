/**
 * A webhook receiver: verifies each message's signature and prints each event once.
 *
 *   WEBHOOK_SECRET=whsec_... node docs/examples/receive-webhook.ts [port]
 *
 * During a rotation, set both secrets, separated by a comma.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingHttpHeaders } from "node:http"

/** Maximum size of a message in bytes; an event is never larger than a commit. */
const body_bytes_max = 1024 * 1024
/** Maximum clock difference in seconds; an older message may be a replay. */
const tolerance_s = 300

const keys = (process.env.WEBHOOK_SECRET ?? "")
  .split(",")
  .map((secret) => Buffer.from(secret.trim().replace(/^whsec_/, ""), "base64"))
// With an empty key anyone could sign.
if (keys.some(({ length }) => length < 24))
  throw new Error("WEBHOOK_SECRET is missing or too short: set the webhook's secret (whsec_...).")

/** Returns true if the message is recent and has a signature by one of the secrets. */
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

// In production, store these ids in the same transaction as the effects of the event.
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
