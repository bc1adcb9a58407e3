/** The state and the ports of the door. */
import type { Clock, Deferred } from "effect"
import type { Deadlines } from "#gateway/door/deadlines.ts"
import type { rateLimiter } from "#gateway/door/rate-limit.ts"
import type { Identity } from "#gateway/identity.ts"
import type { RequestMetrics } from "#gateway/metrics.ts"
import type { routesOf } from "#gateway/routes.ts"
import type { Tickets } from "#gateway/ticket/tickets.ts"
import type { Transport } from "#gateway/transport.ts"
import type { Rules } from "#schemas/policy-rule.ts"
import type { Settings } from "#schemas/settings.ts"

export interface DoorParts {
  readonly settings: () => Settings
  readonly transport: Transport["Service"]
  readonly authenticate: Identity["Service"]["authenticate"]
  readonly rules: () => Rules
  readonly tickets: Tickets | undefined
  readonly clock: Clock.Clock
  readonly in_flight: Deadlines
  readonly closing: Deferred.Deferred<void>
  readonly find: ReturnType<typeof routesOf>
  /** Names of the services, for the links of error pages. */
  readonly services: ReadonlyArray<string>
  readonly take: ReturnType<typeof rateLimiter>
  readonly metrics: RequestMetrics
  /** Whether requests are traced. */
  readonly is_traced: boolean
}
