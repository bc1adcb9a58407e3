/** Where to look for what was not found, by what was asked for: not every noun has a list. */

interface Asked {
  readonly method: string
  readonly path: string
}

const others = "another project's are not found either"

/** The first that fits counts; `$1` is the path's own word, which is the noun's too. */
const places: ReadonlyArray<readonly [path: RegExp, advice: string]> = [
  [/^\/api\/metrics\/./, "see which metrics there are: almanac readings sources"],
  [/^\/api\/tier\/./, "the tiers are 1 to 4: almanac readings show"],
  // Of all its paths only this one names a node.
  [/^\/v1\/cluster\/leave/, "see which nodes there are: almanac cluster status"],
  // An id is of hexadecimal digits; what else is there names no blob.
  [/^\/v1\/blobs\/[0-9a-f]/, "see what is there: almanac blobs list"],
  [/^\/v1\/admin\/(jobs|targets)\/./, "see what is there: almanac $1 list --all-projects"],
  [/^\/v1\/admin\/(workers|rollouts|read-models)\/./, "see what is there: almanac $1 list"],
  [
    /^\/v1\/admin\/domains\/./,
    "a domain is there once anything of it is set: almanac domains update --help",
  ],
  [/^\/v1\/admin\/audit\/./, "see what the log holds: almanac audit events"],
  [
    /^\/v1\/webhooks\/[^/]+\/dead-letters\/\d/,
    `see what is there: almanac webhooks dead-letters ID; ${others}`,
  ],
  [
    /^\/v1\/(targets|policies|backups|restores|jobs|webhooks)\/./,
    `see what is there: almanac $1 list; ${others}`,
  ],
  [
    /^\/v1\/target-templates\/./,
    "see what is there: almanac templates list; another domain's are not found either",
  ],
  // Keystone's.
  [/^\/v3\//, "check OS_AUTH_URL"],
]

/** Of a path that names no thing, the whole of it is not there. */
const unserved = "check the address, and that the server serves this: services in its configuration"

/** A body that names what is not there is refused as a body, but for that of a restore. */
const restored = `see which backups there are: almanac backups list; ${others}`

/** What to do where this was answered with 404; the path may have its query. */
export const nextOfAbsence = ({ method, path }: Asked) => {
  if (method === "POST" && path === "/v1/restores") return restored
  const found = places.find(([pattern]) => pattern.test(path))
  if (found === undefined) return unserved
  const [pattern, advice] = found
  return advice.replace("$1", pattern.exec(path)?.[1] ?? "")
}
