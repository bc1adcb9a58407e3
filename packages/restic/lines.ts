/** Splits restic's output into lines, or into the elements of a JSON array, with bounded memory. */

/** Maximum length of a line: a path has up to 4,096 bytes, each up to six characters in JSON. */
const line_chars_max = 65_536
/** Maximum size of an array element: a snapshot lists up to 20,000 paths. */
const element_bytes_max = 134_217_728

/** Receives output in chunks. */
export type Sink = (chunk: Buffer) => void

/** Passes on each complete line without its terminator; skips lines that are too long. */
export const lineSink = (onLine: (line: string) => void): Sink => {
  let parts: Array<Buffer> = []
  let held = 0
  let is_skipping = false
  return (chunk) => {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const size = held + end - from
      if (!is_skipping && size <= line_chars_max) {
        const line = Buffer.concat([...parts, chunk.subarray(from, end)]).toString("utf8")
        if (line !== "") onLine(line)
      }
      parts = []
      held = 0
      is_skipping = false
      from = end + 1
    }
    held += chunk.length - from
    if (held > line_chars_max) is_skipping = true
    if (is_skipping) parts = []
    else if (from < chunk.length) parts.push(chunk.subarray(from))
  }
}

const byte = (text: string) => text.charCodeAt(0)
const quote = byte('"')
const backslash = byte("\\")
const openings = new Set([byte("["), byte("{")])
const closings = new Set([byte("]"), byte("}")])

/** Passes on each object of a JSON array; calls `onExcess` once if one is too long. */
export const elementSink = (onElement: (json: string) => void, onExcess: () => void): Sink => {
  let parts: Array<Buffer> = []
  let held = 0
  let depth = 0
  let is_text = false
  let is_escaped = false
  let is_over = false
  return (chunk) => {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const code = chunk[at] ?? 0
      if (is_escaped) is_escaped = false
      else if (is_text && code === backslash) is_escaped = true
      else if (code === quote) is_text = !is_text
      else if (is_text) continue
      else if (openings.has(code)) {
        if (depth++ === 1) from = at
      } else if (closings.has(code) && --depth === 1) {
        if (!is_over) {
          onElement(Buffer.concat([...parts, chunk.subarray(from, at + 1)]).toString("utf8"))
        }
        parts = []
        held = 0
      }
    }
    if (depth < 2 || is_over) return
    parts.push(chunk.subarray(from))
    held += chunk.length - from
    if (held <= element_bytes_max) return
    is_over = true
    parts = []
    onExcess()
  }
}
