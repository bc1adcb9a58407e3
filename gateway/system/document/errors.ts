/** The error responses that the door sends for any operation, in the format of its path. */
import type { Access } from "#gateway/access.ts"
import {
  blob,
  carrier,
  dashboard,
  type Envelope,
  envelopeOf,
  share_protection,
} from "#gateway/envelope.ts"
import {
  isObject,
  type JsonObject,
  type Operation,
  type Response,
  referenceTo,
  resolved,
  type Schemas,
} from "#gateway/system/document/json.ts"
import { ErrorCategory, envelope_texts } from "#schemas/system/rejection.ts"

const text = (description: string) => ({ type: "string", description })

const object = (description: string, properties: Schemas, optional: Schemas = {}) => ({
  type: "object",
  description,
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
})

const string = { type: "string" }

/**
 * The format of errors of each group of paths. Blob storage describes its members in its error
 * classes.
 */
const formats = {
  Error: object("An error of share protection, or of a path that belongs to no service.", {
    code: text(envelope_texts.code),
    title: text(envelope_texts.title),
    detail: text(envelope_texts.detail),
    category: {
      type: "string",
      enum: ErrorCategory.literals,
      description: envelope_texts.category,
    },
  }),
  BlobError: object(
    "An error of blob storage.",
    { code: string, message: string, detail: string, request_id: string },
    { grpc_code: { type: "integer", minimum: 0, maximum: 16 } },
  ),
  DashboardError: object("An error of the capital pressure dashboard.", {
    detail: text(envelope_texts.detail),
  }),
  ServiceError: object("An error of carrier search or plant disease prediction.", {
    error: text(envelope_texts.detail),
  }),
}

const names: ReadonlyMap<Envelope, keyof typeof formats> = new Map([
  [share_protection, "Error"],
  [blob, "BlobError"],
  [dashboard, "DashboardError"],
  [carrier, "ServiceError"],
])

/** The library derives a schema from a class of errors, and names it after the class. */
export const error_suffix = /Encoded(_\d+)?$/

/** The members of each error class that has this one. */
const classesWith = (member: string, schemas: Schemas) =>
  Object.entries(schemas).flatMap(([name, { properties }]) =>
    error_suffix.test(name) && isObject(properties) && member in properties ? [properties] : [],
  )

/** The components of all errors, with what their classes add: codes and descriptions. */
export const errorSchemas = (schemas: Schemas): Schemas => {
  const withClasses = (format: JsonObject & { properties: Schemas }, member: string) => {
    const classes = classesWith(member, schemas)
    const [first = {}] = classes
    const described = Object.entries(format.properties).map(([name, schema]) => {
      const known = first[name]
      return [name, { ...(isObject(known) && { description: known.description }), ...schema }]
    })
    const properties: Schemas = Object.fromEntries(described)
    const codes = classes.flatMap(({ code }) => (isObject(code) ? [code.enum].flat() : []))
    const code = { ...properties.code, enum: [...new Set(codes.map(String))].toSorted() }
    return { ...format, properties: { ...properties, code } }
  }
  return {
    ...formats,
    Error: withClasses(formats.Error, "category"),
    BlobError: withClasses(formats.BlobError, "request_id"),
  }
}

const forbidden = (access: Access) =>
  typeof access === "object" && "rule" in access
    ? `The policy rule \`${access.rule}\` does not allow the caller.`
    : "The caller lacks the required scope or role."

/** When the door responds with each status. */
const causes = (access: Access): Readonly<Record<string, string>> => ({
  400: "A parameter, a header or the body is malformed or has an invalid value. The text names it.",
  401: "The request has no valid token or client certificate.",
  403: forbidden(access),
  413: "The request body is larger than this operation accepts.",
  415: "The request body has a content type or an encoding that this operation does not accept.",
  422: "The `Idempotency-Key` was used before, by a request with another body or query.",
  429: "The caller has exceeded the rate limit. Wait for the number of seconds in `Retry-After`.",
  500: "The server failed unexpectedly. Its log has the cause under the request id.",
  503: "The server, its log or a service that it needs is unavailable. Retry with backoff.",
  504: "The request took longer than its deadline.",
})

/** The statuses that the door may send for this operation. */
const statusesOf = (access: Access, method: string, operation: Operation, has_key: boolean) => {
  const { parameters = [], requestBody } = operation
  const is_read = method === "get"
  const has_input = requestBody !== undefined || !is_read || parameters.length > 0
  return [
    ...(has_input ? ["400"] : []),
    ...(access === "public" ? [] : ["401"]),
    ...(typeof access === "string" ? [] : ["403"]),
    ...(requestBody === undefined ? [] : ["413", "415"]),
    ...(has_key ? ["422"] : []),
    ...["429", "500", "503", "504"],
  ]
}

/** Descriptions that generation derives from a class name, or from nothing, instead of a text. */
const is_name = /^(<No Content>|[\w/]+( \| [\w/]+)*)$/

const successes: Readonly<Record<string, string>> = {
  200: "The request succeeded.",
  201: "The resource was created.",
  202: "The request was accepted. The work continues in the background.",
  204: "The request succeeded. The response has no body.",
  300: "The available versions.",
}

/** One description of a response for several causes. */
const merged = (descriptions: string) =>
  descriptions.includes(" | ")
    ? `One of these:\n\n${descriptions.replaceAll(/^| \| /g, (cut) => `${cut && "\n"}- `)}`
    : descriptions

const withText = (
  status: string,
  response: Response,
  texts: Readonly<Record<string, string>>,
): Response => {
  const { description } = response
  const named = description.split(" | ").filter((one) => !is_name.test(one))
  const own = merged(named.join(" | "))
  return { ...response, description: own || (texts[status] ?? description) }
}

/** Whether an error response has other members than the format of its path. */
const hasMore = ({ content }: Response, format: Schemas, schemas: Schemas) => {
  const { properties } = resolved(content?.["application/json"]?.schema ?? {}, schemas)
  return isObject(properties) && Object.keys(properties).some((member) => !(member in format))
}

interface ErrorContext {
  readonly access: Access
  /** Whether a request may have a key that makes it idempotent. */
  readonly has_key: boolean
  readonly schemas: Schemas
}

/** All responses of an operation: its own, and the door's where it has none for a status. */
export const responsesOf = (
  path: string,
  method: string,
  operation: Operation,
  { access, has_key, schemas }: ErrorContext,
): Operation["responses"] => {
  const texts = { ...causes(access), ...successes }
  const name = names.get(envelopeOf(path)) ?? "Error"
  const content = { "application/json": { schema: referenceTo(name) } }
  const of_door = statusesOf(access, method, operation, has_key).map((status) => {
    const description = texts[status] ?? ""
    return [status, { description, content }] as const
  })
  const own = Object.entries(operation.responses).map(([status, response]) => {
    const explained = withText(status, response, texts)
    const is_own = status < "400" || hasMore(response, formats[name].properties, schemas)
    return [status, is_own ? explained : { ...explained, content }] as const
  })
  return Object.fromEntries([...of_door, ...own])
}
