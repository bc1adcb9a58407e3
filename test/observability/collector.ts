/** A trace collector for tests: accepts the subset of OTLP over HTTP with JSON that they need. */
import { createServer } from "node:http"

export interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  /** The program that sent the span. */
  readonly service: string
  readonly attributes: Readonly<Record<string, unknown>>
}

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface Sent {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: { readonly attributes: ReadonlyArray<Attribute> }
    readonly scopeSpans: ReadonlyArray<{
      readonly spans: ReadonlyArray<Span & { readonly attributes: ReadonlyArray<Attribute> }>
    }>
  }>
}

const recordOf = (attributes: ReadonlyArray<Attribute>) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

/** Listens on a free port; `texts` holds the raw requests. */
export const startCollector = async () => {
  const texts: Array<string> = []
  const spans: Array<Span> = []
  const take = (text: string) => {
    texts.push(text)
    const sent: Sent = JSON.parse(text)
    for (const { resource, scopeSpans } of sent.resourceSpans) {
      const service = String(recordOf(resource.attributes)["service.name"])
      for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
        spans.push({ ...span, service, attributes: recordOf(span.attributes) })
      }
    }
  }
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      if (request.url === "/v1/traces") take(Buffer.concat(chunks).toString())
      response.end("{}")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    texts,
    spans,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** The names of the spans from the root to this one. */
export const pathOf = (spans: ReadonlyArray<Span>, span: Span): ReadonlyArray<string> => {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId)
  return [...(parent === undefined ? [] : pathOf(spans, parent)), span.name]
}
