/** Types of the console's views, and their addresses. */

/** A view on the page. */
export interface OpenView {
  /** Called after opening and whenever the view's query in the address changes. */
  readonly show: (query: URLSearchParams) => void
  /** Stops all requests of the view. */
  readonly close: () => void
}

export interface View {
  /** Fragment of its address: `#jobs`. */
  readonly name: string
  readonly title: string
  readonly open: (place: HTMLElement) => OpenView
}

/** Builds `#jobs?state=error`; omits empty parameters. */
export const addressOf = (
  name: string,
  parts: Readonly<Record<string, string | undefined>> = {},
): string => {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(parts)) if (value) query.set(key, value)
  const text = query.toString()
  return text === "" ? `#${name}` : `#${name}?${text}`
}

/** Address of an aggregate's history; `of` is `<service>.<aggregate>.<id>`. */
export const historyAddress = (of: string, at?: number): string =>
  addressOf("past", { of, at: at === undefined ? undefined : String(at) })
