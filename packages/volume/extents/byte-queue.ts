/** A queue of bytes: in order of arrival, taken in any lengths, usually without copying. */

/**
 * Parts below `small_bytes` are joined after `small_run` consecutive ones, to keep the list short.
 */
const small_bytes = 4096
const small_run = 128

export const makeByteQueue = () => {
  const parts: Array<Uint8Array> = []
  let bytes = 0
  let run = 0

  /** Appends a part, which must not change afterwards. */
  const push = (part: Uint8Array) => {
    parts.push(part)
    bytes += part.length
    run = part.length < small_bytes ? run + 1 : 0
    if (run < small_run) return
    parts.push(Buffer.concat(parts.splice(-run)))
    run = 0
  }
  /** Takes the next `count` bytes, which must be available. */
  const take = (count: number): Array<Uint8Array> => {
    let left = count
    let index = 0
    for (let part = parts[0]; part && part.length <= left; part = parts[index]) {
      left -= part.length
      index += 1
    }
    const taken = parts.slice(0, index)
    const cut = left > 0 ? parts[index] : undefined
    if (cut) {
      taken.push(cut.subarray(0, left))
      parts[index] = cut.subarray(left)
    }
    parts.splice(0, index)
    bytes -= count
    return taken
  }
  return { push, take, bytes: () => bytes }
}
