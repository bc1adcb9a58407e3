/**
 * A client that knows an API by nothing but the types that are generated of its document: what may
 * be asked of each path, and what it answers with each status.
 */

type Method = "get" | "put" | "post" | "patch" | "delete"

type Operation<Paths, Path extends keyof Paths, M> = M extends keyof Paths[Path]
  ? Paths[Path][M]
  : never

/** What an operation takes; nothing can be asked of what is not there. */
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

/** What an operation answers: its status tells which body it is. */
type Answer<O> = O extends { responses: infer All }
  ? {
      [Status in keyof All]: { readonly status: Status; readonly body: BodyOf<All[Status]> }
    }[keyof All]
  : never

interface Parts {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Asks the server at `url`, with this token. */
export const clientOf =
  <Paths>(url: string, token: string) =>
  async <M extends Method, Path extends keyof Paths & string>(
    method: M,
    path: Path,
    asked: Asked<Operation<Paths, Path, M>>,
  ): Promise<Answer<Operation<Paths, Path, M>>> => {
    // The types above are made of these parts, each of them where the operation has it.
    const { path: names = {}, query = {}, body } = asked as Parts
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name] ?? ""))
    const response = await fetch(new URL(`${filled}?${new URLSearchParams(query)}`, url), {
      method: method.toUpperCase(),
      headers: { "x-auth-token": token, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const answer = { status: response.status, body: text === "" ? undefined : JSON.parse(text) }
    // What the server sends is what its document says: that is what the client trusts.
    return answer as Answer<Operation<Paths, Path, M>>
  }
