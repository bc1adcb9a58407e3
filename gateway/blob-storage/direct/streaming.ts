/** Streams a response of many pieces, no faster than its client reads them. */
import type { BlobReading } from "#actors/blob-storage/ports/engine.ts"
import { rejectCause } from "#gateway/blob-storage/direct/response.ts"
import type { Exchange } from "#gateway/direct.ts"

/** Waits until a response can take more bytes, or ends. */
const makeDrain = ({ response }: Exchange) => {
  let wake: (() => void) | undefined
  const resume = () => {
    wake?.()
    wake = undefined
  }
  response.on("drain", resume)
  response.on("close", resume)
  return () =>
    new Promise<void>((resolve) => {
      wake = resolve
    })
}

/** Begins a response; the returned function writes a piece and resolves when more may follow. */
export const beginStream = (
  exchange: Exchange,
  status: number,
  headers: Readonly<Record<string, string>>,
) => {
  if (!exchange.begin(status, headers)) return undefined
  const drain = makeDrain(exchange)
  return async (piece: string | Uint8Array, onWritten: () => void = () => undefined) => {
    const is_ready = exchange.response.write(piece, (error) => {
      // After a failed write the operating system may still use the bytes.
      if (!error) onWritten()
    })
    if (!is_ready && !exchange.isOver()) await drain()
  }
}

type Write = NonNullable<ReturnType<typeof beginStream>>
type UseWindow = (window: Uint8Array, is_last: boolean) => Promise<void>

/** The head of a response, and the number of the blob's bytes in it. */
interface AnswerHead {
  readonly status: 200 | 206
  readonly headers: Readonly<Record<string, string>>
  readonly length: number
}

/** The recipient of the windows; `isOver` stops reading. */
type Reader = Pick<Exchange, "isOver">

/**
 * Runs `each` for every window while the next one is being read. Throws the fault of a window, or
 * if the windows end before `length` bytes.
 */
export const eachWindow = async (
  reader: Reader,
  windows: AsyncIterableIterator<Uint8Array>,
  first: IteratorResult<Uint8Array>,
  length: number,
  each: UseWindow,
) => {
  let left = length
  for (let read = first; read.done !== true && !reader.isOver(); ) {
    left -= read.value.length
    const next = windows.next()
    // Awaited below: until then its failure must not count as unhandled.
    next.catch(() => undefined)
    await each(read.value, left === 0)
    read = await next
  }
  if (!reader.isOver() && left !== 0) {
    throw new Error(`The blob ended ${left} bytes too early.`)
  }
}

/**
 * Reads a blob's windows with `use`, which gets the first of them, and closes the reading
 * afterwards.
 */
export const withWindows = async (
  reading: BlobReading,
  use: (
    windows: AsyncIterableIterator<Uint8Array>,
    first: IteratorResult<Uint8Array>,
  ) => Promise<void>,
) => {
  const windows = reading.windows()
  try {
    await use(windows, await windows.next())
  } finally {
    await windows.return?.()
  }
}

/** Reads all windows, so that a response sent afterwards is complete or an error. */
export const verify = (reader: Reader, reading: BlobReading) => {
  const size = Number(reading.meta.size)
  return withWindows(reading, (windows, first) =>
    eachWindow(reader, windows, first, size, async (window) => reading.recycle?.(window)),
  )
}

/**
 * Responds with the windows of a reading. `send` gets `write`, and `each` to iterate the windows;
 * it returns the end of the body. A fault before the head is a rejection; later it cuts the
 * response.
 */
export const sendWindows = async (
  exchange: Exchange,
  reading: BlobReading,
  { status, headers, length }: AnswerHead,
  send: (write: Write, each: (use: UseWindow) => Promise<void>) => Promise<string | undefined>,
) => {
  let is_begun = false
  try {
    await withWindows(reading, async (windows, first) => {
      const write = beginStream(exchange, status, headers)
      is_begun = true
      if (write === undefined) return
      const end = await send(write, (use) => eachWindow(exchange, windows, first, length, use))
      if (!exchange.isOver()) exchange.response.end(end)
    })
  } catch (cause) {
    if (is_begun) exchange.fail(cause)
    else rejectCause(exchange, cause)
  }
}
