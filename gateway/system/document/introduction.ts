/** The introduction of the API reference, in Markdown: what holds for every operation. */
import {
  correlation_id_length_max,
  idempotency_key_length_max,
  url_length_max,
} from "#gateway/limits.ts"
import { page_limit, page_limit_max } from "#schemas/system/audit.ts"

type Row = ReadonlyArray<string>

const table = (header: Row, ...rows: ReadonlyArray<Row>) =>
  [header, header.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n")

const authentication = `## Authentication

Send a token in the header \`Authorization: Bearer <token>\` or \`X-Auth-Token: <token>\`. If a
request has both, \`X-Auth-Token\` is used. A server with TLS also accepts client certificates.

${table(
  ["credentials", "access"],
  ["a static token of the configuration", "its scopes and roles"],
  ["a token issued by `POST /v1/admin/tokens`", "its scopes and roles"],
  ["a JWT (HS256, RS256 or EdDSA)", "the scopes and roles in its claims"],
  ["a Keystone token", "the policy rules decide by its roles and scope"],
  ["a client certificate", "the scopes and roles that the configuration maps to its subject"],
)}

The scopes are \`blobs:read\`, \`blobs:write\` and \`cluster:admin\`. Each operation lists what it
needs. Carrier search, plant disease prediction and the dashboard are public by default. A missing
or invalid credential returns 401, a missing scope or role 403, and a resource of another project
404.`

const errors = `## Errors

An error has a JSON body. Its format depends on the path:

${table(
  ["paths", "body"],
  ["`/v1/blobs`, `/v1/cluster`", '`{"code", "message", "detail", "request_id"}`'],
  ["other `/v1` paths", '`{"code", "title", "detail", "category"}`'],
  ["`/api/search`, `/predict`, `/v2`", '`{"error"}`'],
  ["other `/api` paths, `/health`", '`{"detail"}`'],
)}

For blob storage \`code\` is the name of a gRPC status, such as \`NOT_FOUND\`. On other \`/v1\`
paths it begins with \`svc.\`, and \`category\` is \`tenant_action_required\` if the caller can
resolve the error, or \`operator_action_required\` if an operator must.

Any path also responds with 404 (no such path), 405 (wrong method; 501 for blob storage) with
\`Allow\`, 408 (the body arrives too slowly), 414 (a URL longer than ${url_length_max}
characters), 429 with \`Retry-After\` if a rate limit is configured, and 503 while the server
starts, stops or cannot reach its log.

Retry only 429, 503 and 504: start at 100 ms, double the wait each time up to 30 s, and add jitter.`

const pagination = `## Pagination

A list in share protection, webhooks and the audit log returns a page. \`limit\` is 1 to
${page_limit_max}, and ${page_limit} by default. To get the next page, send the \`next_marker\`
of the response as \`marker\`; on the last page it is null or absent. A marker stays valid after
its item is deleted. A limit out of range or a malformed marker returns 400. Blob storage
uses \`cursor\` and \`next_cursor\` instead.`

const idempotency = `## Idempotency

Send the header \`Idempotency-Key\` (1 to ${idempotency_key_length_max} printable ASCII
characters, such as a UUID) with a POST, PUT, PATCH or DELETE that you may retry. A request with
the same caller, project, method, path and key is carried out once, and a retry gets the result
of the first request. The same key with another body or query returns 422. A rejected request
does not use up its key. A key is valid while it is among the last 64 commands of the resource; for
an issued credential, as long as the credential is kept. Operations that are idempotent anyway
accept the header and ignore it.`

const positions = `## Positions

A write returns \`X-Almanac-Position\`, the position of its commit in the log. Reads come from read
models that follow the log. To read your own write, send the header \`X-Almanac-Position\` with the
value of the write: the server waits until its read model includes that position, for at most 2 s,
and otherwise responds with 503 and \`Retry-After\`.`

const request_ids = `## Request ids

Each response has a new \`X-Request-Id\`, which logs, events and the audit log contain. The
\`X-Request-Id\` of a request is returned as \`X-Correlation-Id\`, at most
${correlation_id_length_max} characters of it, and kept with the events that the request causes.
Share protection also returns \`X-Openstack-Request-Id: req-<id>\`.`

const values = `## Times and numbers

Times are RFC 3339 in UTC with \`Z\`, except in blob storage, which uses nanoseconds since 1970.
64-bit integers of blob storage are exact JSON integers, which may exceed 2^53: parse them without
rounding, or set \`json.int64 = "string"\` on the server to receive strings. Requests accept both.
Text must be well-formed Unicode without NUL. Share protection rejects unknown fields in a request
body; other services ignore them.`

const versions = `## Versions

Paths carry the version of their API: \`/v1\` or \`/v2\`. A version may get new fields,
operations and error texts, so clients must ignore unknown fields in responses.
[/asyncapi.json](/asyncapi.json) describes the published events and how to subscribe to them.`

const about = `Almanac runs five services on one event log: blob storage, share protection, the
capital pressure dashboard, carrier search and plant disease prediction.`

export const introduction = [
  about,
  authentication,
  errors,
  pagination,
  idempotency,
  positions,
  request_ids,
  values,
  versions,
].join("\n\n")
