/**
 * What a caller needs for an endpoint.
 *
 * Each endpoint carries this as an annotation, and the front door reads it: there is no other
 * place where access is decided.
 */
import { Context } from "effect"

export type Access =
  /** Nobody is asked who they are. */
  | "public"
  /** Whoever is known, whatever they may do. */
  | "authenticated"
  /** One of these scopes or roles. */
  | { readonly scopes?: ReadonlyArray<string>; readonly roles?: ReadonlyArray<string> }

/** The annotation. Without one an endpoint is the operators' alone: forgetting locks the door. */
export const Needs = Context.Reference<Access>("gateway/Needs", {
  defaultValue: () => ({ roles: ["admin"] }),
})
