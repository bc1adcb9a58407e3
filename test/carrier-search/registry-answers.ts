/**
 * Responses of FMCSA's QCMobile in each documented shape, and responses of a failing registry. All
 * carriers are invented. Source: market facts B1.1 and B1.2.
 */
import { randomBytes } from "node:crypto"
import { gzipSync } from "node:zlib"
import type { Docket } from "../contract/registry.ts"

export interface Reply {
  readonly status: number
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
  /** How the body is sent; whole by default. */
  readonly manner?: "whole" | "hang" | "hang in body" | "drip" | "reset" | "break off"
}

export const json = (content: unknown, status = 200): Reply => ({
  status,
  headers: { "content-type": "application/json;charset=UTF-8" },
  body: JSON.stringify({ content, retrievalDate: "2026-11-20T07:25:05.638+0000" }),
})

const page = (title: string, status = 200): Reply => ({
  status,
  headers: { "content-type": "text/html" },
  body: `<!DOCTYPE html><html><head><title>${title}</title></head><body><h1>x</h1></body></html>`,
})

/** A carrier in the wire format, shortened. */
export const carrierOf = ({ dot, name, active, carrier_only }: Docket) => ({
  allowedToOperate: active ? "Y" : "N",
  bipdInsuranceOnFile: "1000",
  brokerAuthorityStatus: carrier_only ? "N" : "A",
  carrierOperation: { carrierOperationCode: "A", carrierOperationDesc: "Interstate" },
  censusTypeId: { censusType: "C", censusTypeDesc: "CARRIER", censusTypeId: 1 },
  commonAuthorityStatus: active ? "A" : "I",
  contractAuthorityStatus: "N",
  dbaName: null,
  dotNumber: dot,
  driverOosRate: 5.263157894736842,
  legalName: ` ${name} `,
  statusCode: "A",
})

export const item = (carrier: unknown) => ({
  _links: { basics: { href: "https://mobile.fmcsa.dot.gov/qc/services/carriers/1/basics" } },
  carrier,
})

/** Every documented response for a known or unknown number. */
export const documented = (dockets: ReadonlyArray<Docket>): Reply =>
  json(dockets.map((docket) => item(carrierOf(docket))))

export const unknown: Readonly<Record<string, Reply>> = {
  "no carriers": json([]),
  "null with 200": json(null),
  "null with 404": json(null, 404),
  "not found in text": json("Carrier not found"),
  "not found in text with 404": json("No carrier was not found for this number", 404),
}

/** Requested once and never retried. */
export const final: Readonly<Record<string, readonly [Reply, RegExp]>> = {
  "a bad key with 404": [json("Webkey not found", 404), /FMCSA_WEB_KEY/],
  "no key with 404": [json("Must provide Webkey", 404), /FMCSA_WEB_KEY/],
  "a bad key with 200": [json("Webkey not found or not authorized"), /FMCSA_WEB_KEY/],
  "a bad key with 401": [{ status: 401, body: "" }, /FMCSA_WEB_KEY/],
  "a blocked address": [
    { status: 403, body: "<html><head><title>403 Forbidden</title></head></html>" },
    /rejects this network's address.*mirror/,
  ],
  maintenance: [page("FMCSA System Maintenance Page"), /maintenance/],
  "maintenance with 503": [page("FMCSA System Maintenance Page", 503), /maintenance/],
  "404 of another server": [page("404 Not Found", 404), /registry_url/],
  "404 without anything": [{ status: 404, body: "" }, /registry_url/],
  "404 of JSON that is not its": [{ status: 404, body: '{"error":"no route"}' }, /registry_url/],
  "400": [{ status: 400, body: "{}" }, /400.*registry_url/],
  "a way to another host": [
    { status: 302, body: "", headers: { location: "https://example.invalid/login" } },
    /redirects to another address/,
  ],
  "a way in circles": [
    { status: 302, body: "", headers: { location: "?" } },
    /redirects to another address/,
  ],
}

/** Retried with fewer concurrent requests. */
export const busy: Readonly<Record<string, readonly [Reply, RegExp]>> = {
  "429": [{ status: 429, body: "" }, /429, too many requests/],
  "502": [{ status: 502, body: "<html>Bad Gateway</html>" }, /is busy and returned 502/],
  "503": [{ status: 503, body: "{}" }, /is busy and returned 503/],
  "504": [{ status: 504, body: "" }, /is busy and returned 504/],
  "a reset": [{ status: 200, body: "", manner: "reset" }, /closed the connection/],
  "an answer that breaks off": [{ ...json([]), manner: "break off" }, /closed the connection/],
  "no answer": [{ status: 200, body: "", manner: "hang" }, /^timeout/],
  "no end of the answer": [{ ...json([]), manner: "hang in body" }, /^timeout/],
}

const bare = carrierOf({ mc: 1, dot: 1, name: "X", active: true, carrier_only: true })

const without = (key: keyof typeof bare, value?: unknown): Reply =>
  json([item({ ...bare, [key]: value })])

const packed = (body: Buffer): Reply => ({
  status: 200,
  body,
  headers: { "content-encoding": "gzip", "content-type": "application/json" },
})

/** Retried, and never taken as a valid response. */
export const broken: Readonly<Record<string, readonly [Reply, RegExp]>> = {
  "500": [{ status: 500, body: "{}" }, /returned 500/],
  "a web page with 200": [page("Welcome"), /a web page/],
  "nothing with 200": [{ status: 200, body: "" }, /empty response/],
  "text with 200": [{ status: 200, body: "OK" }, /not JSON/],
  "JSON that is cut off": [{ status: 200, body: '{"content":[{"carr' }, /not JSON/],
  "JSON without content": [{ status: 200, body: '{"ok":true}' }, /without content/],
  "a list for an answer": [{ status: 200, body: "[]" }, /without content/],
  "a number for content": [json(5), /other content/],
  "other text for content": [json("Try later"), /other content/],
  "an item without carrier": [json([{ _links: {} }]), /not a carrier/],
  "an item of null": [json([null]), /not a carrier/],
  "a carrier of null": [json([item(null)]), /not a carrier/],
  "no allowedToOperate": [without("allowedToOperate"), /without its status/],
  "allowedToOperate of another kind": [without("allowedToOperate", true), /without its status/],
  "no common authority": [without("commonAuthorityStatus"), /without its status/],
  "a contract authority of null": [without("contractAuthorityStatus", null), /without its status/],
  "no broker authority": [without("brokerAuthorityStatus"), /without its status/],
  "no legal name": [without("legalName", null), /without its legal name/],
  "no USDOT number": [without("dotNumber"), /without its USDOT number/],
  "gzip that is none": [packed(randomBytes(2000)), /unreadable/],
  "gzip that is cut off": [packed(gzipSync(randomBytes(4000)).subarray(0, 2000)), /unreadable/],
  "an encoding that was not asked for": [
    { status: 200, body: "x", headers: { "content-encoding": "br" } },
    /unreadable/,
  ],
  "a giant body": [{ status: 200, body: Buffer.alloc(5 << 20, " ") }, /more than 4 MiB/],
  "a giant body that is packed": [packed(gzipSync(Buffer.alloc(8 << 20, " "))), /more than 4 MiB/],
}
