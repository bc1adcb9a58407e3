/**
 * A client that knows an API only through the types generated from its document: the valid requests
 * of each path, and the response body of each status.
 */

type Method = "get" | "put" | "post" | "patch" | "delete"

type Operation<Paths, Path extends keyof Paths, M> = M extends keyof Paths[Path]
  ? Paths[Path][M]
  : never

/** The request of an operation; an operation that does not exist accepts none. */
type Asked<O> = O extends { responses: unknown }
  ? (O extends { parameters: { path: infer Names } } ? { path: Names } : object) &
      (O extends { parameters: { query?: infer Query } } ? { query?: Query } : object) &
      (O extends { requestBody: { content: { "application/json": infer Body } } }
        ? { body: Body }
        : object)
  : never

type BodyOf<Response> = Response extends { content: { "application/json": infer Body } }
  ? Body
  : undefined

/** The response of an operation: its status determines the type of its body. */
type Answer<O> = O extends { responses: infer All }
  ? {
      [Status in keyof All]: { readonly status: Status; readonly body: BodyOf<All[Status]> }
    }[keyof All]
  : never

interface Parts {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly body?: unknown
}

/** Calls the server at `url` with this token. */
export const clientOf =
  <Paths>(url: string, token: string) =>
  async <M extends Method, Path extends keyof Paths & string>(
    method: M,
    path: Path,
    input: Asked<Operation<Paths, Path, M>>,
  ): Promise<Answer<Operation<Paths, Path, M>>> => {
    // The types above consist of these parts, each present if the operation has it.
    const { path: names = {}, query = {}, body } = input as Parts
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name] ?? ""))
    const sent = new URLSearchParams(
      Object.entries(query).map(([name, value]) => [name, String(value)]),
    )
    const response = await fetch(new URL(`${filled}?${sent}`, url), {
      method: method.toUpperCase(),
      headers: { "x-auth-token": token, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const answer = { status: response.status, body: text === "" ? undefined : JSON.parse(text) }
    // The client trusts the server to send what its document promises.
    return answer as Answer<Operation<Paths, Path, M>>
  }
