/** Advice after a 404, by the requested path: not every resource has a list. */

interface RequestLine {
  readonly method: string
  readonly path: string
}

const others = "resources of other projects are not found either"

/** The first match wins; `$1` is the path's collection, which is also the command group. */
const advice_by_path: ReadonlyArray<readonly [path: RegExp, advice: string]> = [
  [/^\/api\/metrics\/./, "list the metrics: almanac readings sources"],
  [/^\/api\/tier\/./, "use a tier from 1 to 4: almanac readings show"],
  // Of the cluster's paths only this one names a node.
  [/^\/v1\/cluster\/leave/, "list the nodes: almanac cluster status"],
  // An id consists of hexadecimal digits; the other paths name no blob.
  [/^\/v1\/blobs\/[0-9a-f]/, "list the blobs: almanac blobs list"],
  [/^\/v1\/admin\/(jobs|targets)\/./, "list them: almanac $1 list --all-projects"],
  [/^\/v1\/admin\/(workers|rollouts|read-models)\/./, "list them: almanac $1 list"],
  [
    /^\/v1\/admin\/domains\/./,
    "a domain exists once it has a setting: almanac domains update --help",
  ],
  [/^\/v1\/admin\/audit\/./, "list the events of the log: almanac audit events"],
  [
    /^\/v1\/webhooks\/[^/]+\/dead-letters\/\d/,
    `list them: almanac webhooks dead-letters ID; ${others}`,
  ],
  [
    /^\/v1\/(targets|policies|backups|restores|jobs|webhooks)\/./,
    `list them: almanac $1 list; ${others}`,
  ],
  [
    /^\/v1\/target-templates\/./,
    "list them: almanac templates list; templates of other domains are not found either",
  ],
  // Keystone
  [/^\/v3\//, "check OS_AUTH_URL"],
]

/** For a path without a resource: the route does not exist. */
const unserved =
  "check the address, and that the server runs this service: services in its configuration"

/** Of all bodies, only a restore's unknown backup is a 404. */
const restored = `list the backups: almanac backups list; ${others}`

/** Advice after a 404 to this request; the path may have a query. */
export const notFoundAdvice = ({ method, path }: RequestLine) => {
  if (method === "POST" && path === "/v1/restores") return restored
  const found = advice_by_path.find(([pattern]) => pattern.test(path))
  if (found === undefined) return unserved
  const [pattern, advice] = found
  return advice.replace("$1", pattern.exec(path)?.[1] ?? "")
}
