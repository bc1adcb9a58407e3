/** Sends an answer of many pieces no faster than its client takes them. */
import type { BlobReading } from "#actors/blob-storage/blobs/engine.ts"
import type { Exchange } from "#gateway/direct.ts"

/** Waits for the drain of a response, or for its end. */
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

/** Begins the answer; the returned function writes a piece and resolves when more may follow. */
export const beginPouring = (
  exchange: Exchange,
  status: number,
  headers: Readonly<Record<string, string>>,
) => {
  if (!exchange.begin(status, headers)) return undefined
  const drain = makeDrain(exchange)
  return async (piece: string | Uint8Array, onWritten: () => void = () => undefined) => {
    const is_ready = exchange.response.write(piece, (error) => {
      // After a failed write nobody knows whether the system still uses the bytes.
      if (!error) onWritten()
    })
    if (!is_ready && !exchange.isOver()) await drain()
  }
}

/** Whoever gets the windows: `isOver` ends their reading. */
type Reader = Pick<Exchange, "isOver">

/**
 * Runs `each` for every window, while the next one is read. Throws the fault of a window, and where
 * the windows end before `length` bytes.
 */
export const eachWindow = async (
  reader: Reader,
  windows: AsyncIterableIterator<Uint8Array>,
  first: IteratorResult<Uint8Array>,
  length: number,
  each: (window: Uint8Array, is_last: boolean) => Promise<void>,
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

/** Reads a blob's windows with `use`, which gets the first of them, and ends the reading. */
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

/** Reads all windows, so that what is sent afterwards is whole or an error, and never torn. */
export const verify = (reader: Reader, reading: BlobReading) => {
  const size = Number(reading.meta.size)
  return withWindows(reading, (windows, first) =>
    eachWindow(reader, windows, first, size, async (window) => reading.giveBack?.(window)),
  )
}
