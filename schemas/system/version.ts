/** The API versions. Source: DECISIONS of document 2, "version document". */
import { Schema } from "effect"

const Version = Schema.Struct({
  id: Schema.String,
  status: Schema.Literal("CURRENT"),
  links: Schema.Array(Schema.Struct({ rel: Schema.String, href: Schema.String })),
})

/** Response of `/`. */
export const Versions = Schema.Struct({ versions: Schema.Array(Version) })
/** Response of `/v1/`. */
export const OneVersion = Schema.Struct({ version: Version })

const current = {
  id: "v1.0",
  status: "CURRENT" as const,
  links: [{ rel: "self", href: "/v1/" }],
}

export const versions: typeof Versions.Type = { versions: [current] }
export const version: typeof OneVersion.Type = { version: current }
