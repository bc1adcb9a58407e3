/**
 * The AsyncAPI document: the published events, and the three ways to receive them. Like
 * docs/events.md it is generated from the schemas of the published types.
 *
 * Source: AsyncAPI 3.0.0; issue 10 §3.
 */
import { Schema } from "effect"
import { CloudEvent } from "#schemas/cloud-event.ts"
import type { PublishedType, PublishedTypes } from "#schemas/published.ts"

/** A JSON object. */
type Json = Readonly<Record<string, unknown>>

const json_schema = "http://json-schema.org/draft-07/schema#"
const apache = { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" }
const content_type = "application/cloudevents+json"

/** Converts a schema to JSON Schema draft-07, with all references inlined. */
const schemaOf = (schema: Schema.Top): Json => {
  const { schema: root, definitions } = Schema.toJsonSchemaDocument(schema)
  const inlined = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(inlined)
    if (typeof node !== "object" || node === null) return node
    // A node that is neither an array nor null is a JSON object.
    const { $ref, ...rest } = node as Json
    const own = Object.fromEntries(Object.entries(rest).map(([name, one]) => [name, inlined(one)]))
    if (typeof $ref !== "string") return own
    const eventName = definitions[$ref.split("/").at(-1) ?? ""]
    // A definition is an object.
    return { ...(inlined(eventName) as Json), ...own }
  }
  // The schema of a struct is an object.
  return inlined(root) as Json
}

/** The fields of all events; `data` differs by type. */
const envelope = schemaOf(CloudEvent)

const named = (service: string, type: string) => `${service}.${type}`
const messageRef = (name: string) => ({ $ref: `#/components/messages/${name}` })

const messageOf = (service: string, type: string, { aggregate, when, data }: PublishedType) => {
  const properties = {
    // The properties of the envelope; the ones below are more specific.
    ...(envelope.properties as Json),
    source: { type: "string", const: `/almanac/${service}/${aggregate}` },
    type: { type: "string", const: type },
    data: schemaOf(data),
  }
  return {
    name: type,
    title: type,
    summary: when,
    contentType: content_type,
    payload: { $schema: json_schema, ...envelope, properties },
  }
}

/** A channel: its address, its messages and its protocol bindings. */
const channelOf = (
  address: string | null,
  description: string,
  names: ReadonlyArray<string>,
  more: Json = {},
) => ({
  address,
  description,
  messages: Object.fromEntries(names.map((name) => [name, messageRef(name)])),
  ...more,
})

const text_parameter = (description: string) => ({ description })

const sse_description =
  "Server-sent events of GET /v1/events: `data` is the event, `id` its epoch and sequence, " +
  "`event` its type. Resumable by Last-Event-ID or ?since."
const webhook_description =
  "A POST to the URL of a webhook, signed by Standard Webhooks (webhook-id, webhook-timestamp, " +
  "webhook-signature), at least once, in order for each subject."

/** Only webhooks have these headers. None is required, because all channels share the messages. */
const webhook_headers = {
  type: "object",
  description: "Present in all webhook requests, and only there.",
  properties: {
    "webhook-id": {
      type: "string",
      description: "Identifies the event; the same in every attempt.",
    },
    "webhook-timestamp": {
      type: "string",
      description: "Time of the attempt, in seconds since 1970.",
    },
    "webhook-signature": {
      type: "string",
      description: "`v1,` and base64 of HMAC-SHA256; several are separated by spaces.",
    },
    "almanac-sequence": {
      type: "string",
      description: "The event's number among all published events.",
    },
  },
} as const

/** The document for the published types of these services. */
export const asyncApiOf = (services: ReadonlyArray<readonly [string, PublishedTypes]>): Json => {
  const types = services.flatMap(([service, published]) =>
    Object.entries(published).map(([type, published_type]) => ({ service, type, published_type })),
  )
  const names = types.map(({ service, type }) => named(service, type))
  const subjects = types.map(({ service, type, published_type }) => {
    const address = `events.${service}.${published_type.aggregate}.${type}`
    const description = `On the bus, with ${published_type.subject} as its subject.`
    const name = named(service, type)
    const channel = channelOf(address, description, [name], { servers: [server("bus")] })
    return [`bus.${name}`, channel] as const
  })
  const parameters = {
    webhook_url: text_parameter("The URL of the webhook."),
  }
  const hook = channelOf("{webhook_url}", webhook_description, names, { parameters })
  const sse = channelOf("/v1/events", sse_description, names, {
    servers: [server("gateway")],
    bindings: { http: {} },
  })
  const channels = { events: sse, webhook: hook, ...Object.fromEntries(subjects) }
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Almanac events",
      version: "0.1.0",
      license: apache,
      description:
        "Published events in CloudEvents 1.0. docs/events.md lists the types and the guarantees.",
    },
    defaultContentType: content_type,
    servers,
    channels,
    operations: Object.fromEntries(
      Object.keys(channels).map((name) => [`send.${name}`, operationOf(name)]),
    ),
    components: {
      messages: Object.fromEntries(
        types.map(({ service, type, published_type }) => [
          named(service, type),
          { ...messageOf(service, type, published_type), traits: [{ headers: webhook_headers }] },
        ]),
      ),
      securitySchemes,
    },
  }
}

const server = (name: string) => ({ $ref: `#/servers/${name}` })

const operationOf = (channel: string) => ({
  action: "send",
  channel: { $ref: `#/channels/${channel}` },
  summary:
    channel === "webhook"
      ? "Almanac calls the webhook."
      : "Almanac sends the event to subscribers.",
})

const scheme = (name: string) => ({ $ref: `#/components/securitySchemes/${name}` })

const servers = {
  gateway: {
    host: "localhost:9797",
    protocol: "http",
    security: [scheme("bearer")],
    description: "The gateway. Its address depends on the deployment.",
  },
  bus: {
    host: "localhost:4222",
    protocol: "nats",
    security: [scheme("subscriber")],
    description: "JetStream, stream ALMANAC_EVENTS; dev-credentials.json has the real address.",
  },
} as const

const securitySchemes = {
  bearer: { type: "http", scheme: "bearer" },
  subscriber: { type: "userPassword", description: "A user that can only read the events." },
} as const
