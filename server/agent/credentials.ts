/**
 * An agent's identity and credentials, which its parent passes as one line on standard input.
 * Everything else comes from the settings, as in the server.
 */
import { Schema } from "effect"
import { DomainId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { Name } from "#schemas/share-protection/text.ts"

const Credentials = Schema.Struct({
  worker_id: WorkerId,
  project_id: ProjectId,
  domain_id: Schema.NullOr(DomainId),
  /** The image that it runs. */
  image_version: Name,
  nats: Schema.Struct({
    servers: Schema.Array(Schema.String),
    /** Seed of the worker's own user; null: use the login from the settings. */
    seed: Schema.NullOr(Schema.RedactedFromValue(Schema.String)),
  }),
  /** Sources of the settings in addition to the environment. */
  sources: Schema.Struct({ config: Schema.String, set: Schema.Array(Schema.String) }),
})
export type AgentCredentials = typeof Credentials.Type

export const AgentCredentials = Schema.fromJsonString(Credentials)
