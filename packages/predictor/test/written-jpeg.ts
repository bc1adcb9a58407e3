/**
 * JPEGs of numbers by chance, with codes from 4 to 16 bits: what few encoders write, and every
 * sampling. Source: ITU T.81, B.2, C and F.1.
 */

type Next = (limit: number) => number

/** How many codes have so many bits, from 1 on. */
const first_counts = [0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
const other_counts = [0, 0, 0, 8, 0, 0, 0, 40, 0, 0, 0, 50, 0, 0, 0, 64]
const first_symbols = Array.from({ length: 12 }, (_, n) => n)
/** No more numbers, sixteen zeros, and up to 15 zeros before a number of up to 10 bits. */
const other_symbols = [
  0x00,
  0xf0,
  ...Array.from({ length: 160 }, (_, n) => ((n % 16) << 4) | (Math.floor(n / 16) + 1)),
]
const level_max = 60
const bits_max = 6

type Code = readonly [code: number, bits: number]

const codesBy = (counts: ReadonlyArray<number>, symbols: ReadonlyArray<number>) => {
  const codes = new Map<number, Code>()
  let [code, at] = [0, 0]
  for (const [n, count] of counts.entries()) {
    for (let one = 0; one < count; one++) codes.set(symbols[at++] ?? 0, [code++, n + 1])
    code <<= 1
  }
  return codes
}
const firsts = codesBy(first_counts, first_symbols)
const others = codesBy(other_counts, other_symbols)

const segment = (marker: number, ...body: ReadonlyArray<number>) => {
  const length = body.length + 2
  return [0xff, marker, length >> 8, length & 0xff, ...body]
}

/** The bits of one number, of which a code said how many there are. */
const numberBits = (value: number): Code => {
  const bits = 32 - Math.clz32(Math.abs(value))
  return [value < 0 ? value + (1 << bits) - 1 : value, bits]
}

const blockBits = (next: Next, difference: number): ReadonlyArray<Code | undefined> => {
  const first = numberBits(difference)
  const written: Array<Code | undefined> = [firsts.get(first[1]), first]
  for (let k = 1; k < 64; k++) {
    const symbol = next(4) === 0 ? 0 : (other_symbols[next(other_symbols.length)] ?? 0)
    const [run, bits] = [symbol >> 4, Math.min(symbol & 15, bits_max)]
    k += run
    if (symbol === 0 || k > 63) return [...written, others.get(0)]
    written.push(others.get((run << 4) | bits))
    if (bits > 0) written.push([next(1 << bits), bits])
  }
  return written
}

/** Its sampling as T.81 says it, of each component: 0x21 is twice as many across. */
export const writtenJpeg = (
  width: number,
  height: number,
  samplings: ReadonlyArray<number>,
  next: Next,
): Buffer => {
  const [across, down] = [(samplings[0] ?? 0) >> 4, (samplings[0] ?? 0) & 15]
  const units = Math.ceil(width / (8 * across)) * Math.ceil(height / (8 * down))
  const levels = samplings.map(() => 0)
  let bits = ""
  for (let unit = 0; unit < units; unit++) {
    for (const [n, sampling] of samplings.entries()) {
      for (let block = 0; block < (sampling >> 4) * (sampling & 15); block++) {
        const level = next(2 * level_max) - level_max
        const written = blockBits(next, level - (levels[n] ?? 0))
        levels[n] = level
        for (const [code, count] of written.flatMap((one) => (one ? [one] : []))) {
          if (count > 0) bits += code.toString(2).padStart(count, "0")
        }
      }
    }
  }
  const scan = (bits.match(/.{1,8}/g) ?? []).map((byte) => Number.parseInt(byte.padEnd(8, "1"), 2))
  const numbered = samplings.map((sampling, n) => [n + 1, sampling, 0])
  return Buffer.from([
    0xff,
    0xd8,
    ...segment(0xe0, ...Buffer.from("JFIF\0"), 1, 1, 0, 0, 1, 0, 1, 0, 0),
    ...segment(0xdb, 0, ...Array.from({ length: 64 }, () => next(8) + 1)),
    ...segment(0xc4, 0x00, ...first_counts, ...first_symbols),
    ...segment(0xc4, 0x10, ...other_counts, ...other_symbols),
    ...segment(
      0xc0,
      8,
      height >> 8,
      height & 255,
      width >> 8,
      width & 255,
      samplings.length,
      ...numbered.flat(),
    ),
    ...segment(0xda, samplings.length, ...samplings.flatMap((_, n) => [n + 1, 0]), 0, 63, 0),
    ...scan.flatMap((byte) => (byte === 0xff ? [0xff, 0] : [byte])),
    0xff,
    0xd9,
  ])
}
