/**
 * What an agent is given by who boots it, as one line on its standard input: who it is, and how it
 * gets in. Everything else it reads from the settings, as the server does.
 */
import { Schema } from "effect"
import { DomainId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { Name } from "#schemas/share-protection/text.ts"

const Papers = Schema.Struct({
  worker_id: WorkerId,
  project_id: ProjectId,
  domain_id: Schema.NullOr(DomainId),
  /** The image that it was booted from. */
  image_version: Name,
  nats: Schema.Struct({
    servers: Schema.Array(Schema.String),
    /** Of the worker's own user; null: it is whoever the settings say. */
    seed: Schema.NullOr(Schema.RedactedFromValue(Schema.String)),
  }),
  /** Where the settings are read, beside the environment. */
  sources: Schema.Struct({ config: Schema.String, set: Schema.Array(Schema.String) }),
})
export type AgentPapers = typeof Papers.Type

export const AgentPapers = Schema.fromJsonString(Papers)
