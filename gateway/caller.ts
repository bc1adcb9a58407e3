/** The caller of a request and its rights. Source: document 1 §5, document 2 §5. */

/** How a caller authenticated; `noauth` did not. */
export type CallerKind =
  | "issued"
  | "development"
  | "static"
  | "jwt"
  | "certificate"
  | "keystone"
  | "noauth"

export interface Caller {
  /** The caller's name in the log, never a token. At most 256 characters. */
  readonly actor: string
  readonly kind: CallerKind
  readonly scopes: ReadonlySet<string>
  readonly roles: ReadonlySet<string>
  /** The project that the token is scoped to. */
  readonly project_id?: string
  /** The domain that the project is in. */
  readonly project_domain_id?: string
  /** The domain that the token is scoped to, if it is not scoped to a project. */
  readonly domain_id?: string
  readonly user_id?: string
  readonly user_domain_id?: string
}
