/** Annotations of endpoints and schemas that only the API reference uses. */
import { Context } from "effect"

/** An example of an operation, recorded from a server by a test. */
export interface Example {
  /** The values of path and query parameters and of headers, by name. */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** The request body: a JSON value, or the text of another content type. */
  readonly request?: unknown
  /** The response bodies, by status. */
  readonly responses?: Readonly<Record<string, unknown>>
}

/** Examples by method and path, such as `GET /v1/blobs/{id}`. Annotation of an API or a group. */
export const Examples = Context.Reference<Readonly<Record<string, Example>>>("gateway/Examples", {
  defaultValue: () => ({}),
})
