/**
 * The carrier search API's responses. The page imports no server code; a test compares these types
 * with the server's schemas. Source: document 3 §2 B.
 */

export interface Carrier {
  readonly mcNumber: number
  readonly name: string
  readonly authorityStatus: "ACTIVE"
  readonly operatingType: "CARRIER"
}

export type RegistryKind = "fmcsa" | "mirror" | "none"

export interface Source {
  readonly registry: RegistryKind
  readonly is_healthy: boolean
  readonly detail: string | null
  readonly carriers: number | null
  readonly dockets: number | null
  readonly as_of: string | null
  readonly imported_at: string | null
  readonly is_demo: boolean
  readonly concurrency: number | null
  readonly last_answer_at: string | null
  readonly last_error_at: string | null
  readonly last_error: string | null
}

export interface Sources {
  readonly sources: readonly Source[]
}

export interface Progress {
  /** Numbers looked up so far, of `total`. */
  readonly done: number
  readonly total: number
  /** Carriers found so far. */
  readonly found: number
}

export interface Summary {
  readonly total: number
  readonly found: number
  readonly duration_ms: number
  readonly registry: RegistryKind
}
