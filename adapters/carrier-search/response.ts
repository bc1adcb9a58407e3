/**
 * Parses QCMobile's response for one docket number. Pure.
 *
 * The API reports an unknown key like an unknown number, and maintenance like a success. These
 * cases are distinguished here, because a wrongly empty list is worse than an error. Source: market
 * facts B1.2 and B1.4.
 */
import { type FoundCarrier, LookupFailed } from "#actors/carrier-search/lookup.ts"

export interface FmcsaResponse {
  readonly status: number
  readonly text: string
  /** Delay before the next request in milliseconds. */
  readonly after_ms?: number | undefined
}

export type ReadResult = ReadonlyArray<FoundCarrier> | LookupFailed

type Json = Readonly<Record<string, unknown>>

export const failure = (
  kind: LookupFailed["kind"],
  reason: string,
  after_ms?: number,
): LookupFailed => new LookupFailed({ kind, reason, ...(after_ms !== undefined && { after_ms }) })

const bad_key =
  "FMCSA does not accept the web key; set FMCSA_WEB_KEY, or carrier.web_key_file, to your own " +
  "from " +
  "mobile.fmcsa.dot.gov"
const blocked =
  "FMCSA rejects this network's address with 403, as it does outside the United States and in " +
  "some clouds; search from another network, or import the mirror"
const under_maintenance = "FMCSA is under maintenance; search again later, or import the mirror"
const url_hint = "; check carrier.registry_url"

/** The carriers of a number by USDOT number (possibly none), or the failure. */
export const readResponse = (response: FmcsaResponse): ReadResult => {
  const { status, text, after_ms } = response
  if (isMaintenance(text)) return failure("final", under_maintenance)
  const body = parseJson(text)
  const content = isObject(body) ? body.content : undefined
  const message = typeof content === "string" ? content : ""
  // Check this before "not found", which the message about an invalid key contains too.
  if (/web\s*key/i.test(message) || status === 401) return failure("final", bad_key)
  if (status === 403) return failure("final", blocked)
  if (status === 429) return failure("refused", "FMCSA returned 429, too many requests", after_ms)
  if ([502, 503, 504].includes(status)) {
    return failure("busy", `FMCSA returned ${status}, it is busy`, after_ms)
  }
  if (status >= 500) return failure("broken", `FMCSA returned ${status}`, after_ms)
  if (status === 404 || status === 200) {
    if (isObject(body) && isUnknown(body)) return []
    if (status === 404) return failure("final", `FMCSA returned 404 for every number${url_hint}`)
    return body === undefined ? failure("broken", notJson(text)) : carriersOf(content)
  }
  return failure("final", `FMCSA returned the unexpected status ${status}${url_hint}`)
}

const isMaintenance = (text: string) => /<title>[^<]*maintenance[^<]*<\/title>/i.test(text)

const notJson = (text: string) => {
  if (text.trim() === "") return "FMCSA returned an empty response"
  return /^\s*</.test(text)
    ? "FMCSA returned a web page"
    : "FMCSA returned a response that is not JSON"
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isUnknown = (body: Json) => {
  const { content } = body
  if (typeof content === "string") return /not found/i.test(content)
  return "content" in body && (content === null || (Array.isArray(content) && content.length === 0))
}

const undocumented = (what: string) =>
  failure("broken", `FMCSA returned a response ${what}, which is not as documented`)

const carriersOf = (content: unknown): ReadResult => {
  if (content === undefined) return undocumented("without content")
  const items = isObject(content) ? [content] : content
  if (!Array.isArray(items)) return undocumented("with other content")
  const found = new Map<number, FoundCarrier>()
  for (const item of items) {
    const carrier: unknown = isObject(item) ? item.carrier : undefined
    if (!isObject(carrier)) return undocumented("with content that is not a carrier")
    const one = carrierOf(carrier)
    if (one instanceof LookupFailed) return one
    // Deduplicate, because a USDOT number may be listed several times.
    if (one) found.set(one.dot, one)
  }
  return [...found.values()].toSorted((a, b) => a.dot - b.dot)
}

/** The carrier, if it is active and not also a broker. Source: market facts B1.4. */
const carrierOf = (carrier: Json): FoundCarrier | LookupFailed | undefined => {
  const allowed = carrier.allowedToOperate ?? carrier.allowToOperate
  const { commonAuthorityStatus, contractAuthorityStatus, brokerAuthorityStatus } = carrier
  const authorities = [commonAuthorityStatus, contractAuthorityStatus, brokerAuthorityStatus]
  if ((allowed !== "Y" && allowed !== "N") || !authorities.every(isStatus)) {
    return undocumented("with a carrier without its status")
  }
  const is_active =
    allowed === "Y" && (commonAuthorityStatus === "A" || contractAuthorityStatus === "A")
  if (!is_active || brokerAuthorityStatus === "A" || !isCarrierByCensus(carrier)) return undefined
  const { legalName, dotNumber } = carrier
  const dot = /^\d{1,9}$/.test(String(dotNumber)) ? Number(dotNumber) : 0
  if (typeof legalName !== "string") return undocumented("with a carrier without its legal name")
  if (dot === 0) return undocumented("with a carrier without its USDOT number")
  return { dot, name: legalName.trim() }
}

/** A active, I inactive, N none; other letters are undocumented and count as not active. */
const isStatus = (status: unknown) => typeof status === "string" && /^[A-Z]$/.test(status)

const isCarrierByCensus = ({ censusTypeId: census }: Json) =>
  !isObject(census) ||
  typeof census.censusTypeDesc !== "string" ||
  census.censusTypeDesc.trim().toUpperCase() === "CARRIER"
