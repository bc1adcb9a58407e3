/**
 * What the door keeps of answers, held against what the plain route says: each GET of the tests
 * over HTTP is asked of both. Source: decision 0149.
 */
import { assert } from "@effect/vitest"
import type { HttpServerRequest } from "effect/http"
import type { HotHeaders, HotRequest, HotResponse } from "#gateway/direct.ts"
import type { FrontDoor } from "#gateway/door.ts"

/** Of each answer alone. */
const own_headers = new Set(["x-request-id", "x-correlation-id", "x-openstack-request-id"])

interface Told {
  readonly status: number
  readonly headers: ReadonlyArray<string>
  readonly text: string
}

const told = (
  status: number,
  headers: Iterable<readonly [string, string]>,
  text: string,
): Told => ({
  status,
  text,
  headers: [...headers]
    .filter(([name]) => !own_headers.has(name))
    .map(([name, value]) => `${name}: ${value}`)
    .toSorted(),
})

/** The kept answer to a request, if there is one. */
const keptAnswer = (
  door: FrontDoor,
  { method, url, headers }: HttpServerRequest.HttpServerRequest,
) => {
  let answer: Told | undefined
  const written: { status: number; headers: ReadonlyArray<string> } = { status: 0, headers: [] }
  const response = {
    writeHead: (status: number, headers: ReadonlyArray<string>) => {
      Object.assign(written, { status, headers })
    },
    end: (text: string) => {
      const { status, headers: raw } = written
      const pairs = raw.flatMap((name, i) =>
        i % 2 === 0 ? [[name, raw[i + 1] ?? ""] as const] : [],
      )
      answer = told(status, pairs, text)
    },
  }
  const request = { method, url, complete: true }
  // A kept answer asks no more of either.
  const [asked, answered] = [request as HotRequest, response as unknown as HotResponse]
  door.hot(asked, answered, headers as HotHeaders, () => undefined)
  return answer as Told | undefined
}

/** How many answers were kept and compared, by all tests of a file. */
export const compared = { count: 0 }

/** Asks for what is kept; what it answers takes the plain answer, and fails where they differ. */
export const besideKept = (
  door: FrontDoor,
  request: HttpServerRequest.HttpServerRequest,
  shown: (() => ReadonlyArray<unknown>) | undefined,
) => {
  const before = shown?.()
  const kept = request.method === "GET" ? keptAnswer(door, request) : undefined
  return (status: number, headers: Headers, text: string) => {
    const after = shown?.()
    // What the plain route saw may be newer by now.
    if (kept === undefined || before?.some((part, i) => part !== after?.[i]) === true) return
    assert.deepEqual(kept, told(status, headers, text), `${request.method} ${request.url}`)
    compared.count++
  }
}
