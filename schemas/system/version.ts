/** The API versions. Source: DECISIONS of document 2, "version document". */
import { Schema } from "effect"

const Version = Schema.Struct({
  id: Schema.String.annotate({ description: "The version, such as `v1.0`." }),
  status: Schema.Literal("CURRENT").annotate({ description: "Always `CURRENT` now." }),
  links: Schema.Array(
    Schema.Struct({
      rel: Schema.String.annotate({ description: "The kind of link: `self`." }),
      href: Schema.String.annotate({ description: "The path of the version." }),
    }),
  ).annotate({ description: "Links to the version." }),
}).annotate({ identifier: "Version", description: "A version of the API." })

/** Response of `/`. */
export const Versions = Schema.Struct({
  versions: Schema.Array(Version).annotate({ description: "All versions that are served." }),
})
/** Response of `/v1/`. */
export const OneVersion = Schema.Struct({ version: Version })

const current = {
  id: "v1.0",
  status: "CURRENT" as const,
  links: [{ rel: "self", href: "/v1/" }],
}

export const versions: typeof Versions.Type = { versions: [current] }
export const version: typeof OneVersion.Type = { version: current }
