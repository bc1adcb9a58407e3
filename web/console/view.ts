/** What each view of the console is, and the addresses of views. */

/** A view that stands on the page. */
export interface Opened {
  /** Told at first, and whenever what the address asks for within this view changes. */
  readonly show: (query: URLSearchParams) => void
  /** It asks for nothing more from here on. */
  readonly close: () => void
}

export interface View {
  /** The head of its address: `#jobs`. */
  readonly name: string
  readonly title: string
  readonly open: (place: HTMLElement) => Opened
}

/** `#jobs?state=error`: parts that are empty are left out. */
export const addressOf = (
  name: string,
  parts: Readonly<Record<string, string | undefined>> = {},
): string => {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(parts)) if (value) query.set(key, value)
  const text = query.toString()
  return text === "" ? `#${name}` : `#${name}?${text}`
}

/** An aggregate's past: `of` is `<service>.<aggregate>.<id>`. */
export const pastOf = (of: string, at?: number): string =>
  addressOf("past", { of, at: at === undefined ? undefined : String(at) })
