/**
 * The loops of the erasure code as WebAssembly, made for the shards that they work on: Node runs
 * sixteen bytes with one instruction there, which it cannot do in JavaScript.
 *
 * P is the XOR of the data shards. Q is the sum of 2^i times shard i over GF(256) with the
 * polynomial 0x11d, by Horner's rule: doubling a byte is adding it to itself and, where its top bit
 * was set, taking 0x1d off it. Together they are a Reed-Solomon code of two parities.
 *
 * The binary format is written here by hand, since it is but few instructions.
 * Source: document 1 §2 Replication policies; the WebAssembly specification, chapter 5.
 */

/** Bytes that one turn of a loop takes of each shard: a shard's length is a multiple of it. */
export const step_bytes = 64

const vector_bytes = 16
const vectors = step_bytes / vector_bytes

/** Locals of a kernel that are no vectors. */
const addresses = 4

type Code = ReadonlyArray<number>

/** An unsigned number in LEB128, seven bits a byte, as the format has all of them. */
const leb = (value: number): Code =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)]

const sized = (code: Code): Code => [...leb(code.length), ...code]
const listed = (items: ReadonlyArray<Code>): Code => [...leb(items.length), ...items.flat()]
const section = (id: number, content: Code): Code => [id, ...sized(content)]
const named = (name: string): Code => sized(Array.from(name, (letter) => letter.charCodeAt(0)))

const get = (local: number): Code => [0x20, ...leb(local)]
const set = (local: number): Code => [0x21, ...leb(local)]
const tee = (local: number): Code => [0x22, ...leb(local)]
const add: Code = [0x6a]
const below: Code = [0x49]
const simd = (opcode: number, ...rest: Code): Code => [0xfd, ...leb(opcode), ...rest]
/** A vector at the address on the stack plus `vector` vectors. */
const load = (vector: number) => simd(0x00, 0, ...leb(vector * vector_bytes))
const store = (vector: number) => simd(0x0b, 0, ...leb(vector * vector_bytes))
const filled = (byte: number) => simd(0x0c, ...Array.from({ length: vector_bytes }, () => byte))
const xor = simd(0x51)
const and = simd(0x4e)
const addBytes = simd(0x6e)
const aboveSigned = simd(0x27)
const shiftRightWords = simd(0x8d)
/** Relaxed: what indices above 15 pick is open, and all of ours are below. */
const swizzle = simd(0x100)

const i32 = 0x7f
const v128 = 0x7b

/** A module over a memory that it imports, whose one function takes `parameters` addresses. */
const moduleOf = (parameters: number, locals: number, body: Code) =>
  Uint8Array.from([
    0x00,
    0x61,
    0x73,
    0x6d,
    0x01,
    0x00,
    0x00,
    0x00,
    ...section(1, listed([[0x60, ...listed(Array.from({ length: parameters }, () => [i32])), 0]])),
    ...section(2, listed([[...named("erasure"), ...named("memory"), 0x02, 0x00, 0x01]])),
    ...section(3, listed([[0]])),
    ...section(7, listed([[...named("run"), 0x00, 0x00]])),
    ...section(
      10,
      listed([
        sized([
          ...listed([
            [addresses, i32],
            [...leb(locals), v128],
          ]),
          ...body,
          0x0b,
        ]),
      ]),
    ),
  ])

const each = (count: number, code: (at: number) => Code): Code =>
  Array.from({ length: count }, (_, at) => code(at)).flat()

/** The names of a kernel's locals: first its parameters, then addresses, then the vectors. */
const localsOf = (parameters: number) => {
  const first = parameters + addresses
  const group = (at: number) => (vector: number) => first + at * vectors + vector
  const single = (at: number) => first + 3 * vectors + at
  return {
    place: parameters,
    address: parameters + 1,
    begin: parameters + 2,
    limit: parameters + 3,
    p: group(0),
    q: group(1),
    data: group(2),
    polynomial: single(0),
    zero: single(1),
    low_half: single(2),
    table_low: single(3),
    table_high: single(4),
    count: 3 * vectors + 5,
  }
}

type Locals = ReturnType<typeof localsOf>

/** Repeats `body` for each step of the shards; `length` is the parameter that says how long. */
const loop = ({ place }: Locals, length: number, body: Code): Code => [
  0x03,
  0x40,
  ...body,
  ...get(place),
  0x41,
  0xc0,
  0x00,
  ...add,
  ...tee(place),
  ...get(length),
  ...below,
  0x0d,
  0x00,
  0x0b,
]

/**
 * `code` for each vector of a step of the shard whose address is a parameter. The address is one
 * local for all of them, by which V8 sees that they are neighbours and takes two at once.
 */
const eachAt = ({ place, address }: Locals, parameter: number, code: (vector: number) => Code) => [
  ...get(parameter),
  ...get(place),
  ...add,
  ...set(address),
  ...each(vectors, code),
]

const read = ({ address }: Locals, vector: number): Code => [...get(address), ...load(vector)]
const write = ({ address }: Locals, vector: number, value: Code): Code => [
  ...get(address),
  ...value,
  ...store(vector),
]

/** 2Q, on the stack. */
const doubled = ({ q, zero, polynomial }: Locals, vector: number): Code => [
  ...get(q(vector)),
  ...get(q(vector)),
  ...addBytes,
  ...get(zero),
  ...get(q(vector)),
  ...aboveSigned,
  ...get(polynomial),
  ...and,
  ...xor,
]

const polynomial_byte = 0x1d

/**
 * Makes P and Q. Parameters: the address of each data shard, of P, of Q, and the shards' length.
 */
export const encodeKernel = (shards: number) => {
  const [at_p, at_q, length] = [shards, shards + 1, shards + 2]
  const locals = localsOf(shards + 3)
  const { p, q, data } = locals
  const take = (vector: number): Code => [
    ...read(locals, vector),
    ...set(data(vector)),
    ...get(p(vector)),
    ...get(data(vector)),
    ...xor,
    ...set(p(vector)),
    ...doubled(locals, vector),
    ...get(data(vector)),
    ...xor,
    ...set(q(vector)),
  ]
  const begin = (vector: number): Code => [
    ...read(locals, vector),
    ...tee(p(vector)),
    ...set(q(vector)),
  ]
  const body = [
    ...filled(polynomial_byte),
    ...set(locals.polynomial),
    ...loop(locals, length, [
      ...each(shards, (turn) => eachAt(locals, shards - 1 - turn, turn === 0 ? begin : take)),
      ...eachAt(locals, at_p, (vector) => write(locals, vector, get(p(vector)))),
      ...eachAt(locals, at_q, (vector) => write(locals, vector, get(q(vector)))),
    ]),
  ]
  return moduleOf(shards + 3, locals.count, body)
}

/** P becomes the XOR of what is at these parameters. */
const xored = (locals: Locals, parameters: ReadonlyArray<number>): Code => {
  const { p } = locals
  return parameters.flatMap((parameter, turn) =>
    eachAt(locals, parameter, (vector) => {
      const more = turn === 0 ? [] : [...get(p(vector)), ...xor]
      return [...read(locals, vector), ...more, ...set(p(vector))]
    }),
  )
}

/** XOR of the shards at the first `shards` addresses, to the address that follows; the length. */
export const xorKernel = (shards: number) => {
  const locals = localsOf(shards + 2)
  const given = Array.from({ length: shards }, (_, shard) => shard)
  const body = loop(locals, shards + 1, [
    ...xored(locals, given),
    ...eachAt(locals, shards, (vector) => write(locals, vector, get(locals.p(vector)))),
  ])
  return moduleOf(shards + 2, locals.count, body)
}

/** Each byte of a vector times a constant, by a table for its low half and one for its high. */
const product = ({ low_half, table_low, table_high }: Locals, vector: Code): Code => [
  ...get(table_low),
  ...vector,
  ...get(low_half),
  ...and,
  ...swizzle,
  ...get(table_high),
  ...vector,
  0x41,
  4,
  ...shiftRightWords,
  ...get(low_half),
  ...and,
  ...swizzle,
  ...xor,
]

/** Bytes of a shard that are still near when they are read again. */
const block_bytes = 1024

/** Runs the loops one after the other over each block of the shards. */
const blocks = (
  { place, begin, limit }: Locals,
  length: number,
  loops: ReadonlyArray<(length: number) => Code>,
): Code => [
  0x03,
  0x40,
  ...get(place),
  ...tee(begin),
  0x41,
  ...leb(block_bytes),
  ...add,
  ...set(limit),
  // The last block ends with the shard.
  ...get(length),
  ...get(limit),
  ...get(length),
  ...get(limit),
  ...below,
  0x1b,
  ...set(limit),
  ...loops.flatMap((run) => [...get(begin), ...set(place), ...run(limit)]),
  ...get(place),
  ...get(length),
  ...below,
  0x0d,
  0x00,
  0x0b,
]

/**
 * Makes one lost data shard of Q and the others, or two of P, Q and the others.
 *
 * With P + P' in the place of the second, x + y, Q + Q' is (2^x + 2^y) times the first: so one
 * product makes it, by the inverse. Parameters: the address of each data shard, of P, of Q, the
 * length, and the address of the inverse's two tables of 16 bytes. V8 takes two vectors at once of
 * sums alone: so these have a loop, the products one, and what the second is made with another.
 */
export const rebuildKernel = (shards: number, first: number, second?: number) => {
  const [at_p, at_q, length, tables] = [shards, shards + 1, shards + 2, shards + 3]
  const locals = localsOf(shards + 4)
  const { p, q, table_low, table_high, low_half, polynomial, zero } = locals
  const left = Array.from({ length: shards }, (_, shard) => shard).filter(
    (shard) => shard !== first && shard !== second,
  )
  const two = (code: (second_shard: number) => Code): Code =>
    second === undefined ? [] : code(second)
  const horner = each(shards, (turn) => {
    const shard = shards - 1 - turn
    const before = (vector: number): Code => (turn === 0 ? get(zero) : doubled(locals, vector))
    if (shard === first) return each(vectors, (vector) => [...before(vector), ...set(q(vector))])
    const given = (vector: number) => (shard === second ? get(p(vector)) : read(locals, vector))
    return eachAt(locals, shard, (vector) => {
      const more = turn === 0 ? [] : [...before(vector), ...xor]
      return [...given(vector), ...more, ...set(q(vector))]
    })
  })
  const sums: Code = [
    ...two(() => xored(locals, [...left, at_p])),
    ...horner,
    ...eachAt(locals, at_q, (vector) => [
      ...read(locals, vector),
      ...get(q(vector)),
      ...xor,
      ...set(q(vector)),
    ]),
    ...eachAt(locals, first, (vector) => write(locals, vector, get(q(vector)))),
    ...two((at) => eachAt(locals, at, (vector) => write(locals, vector, get(p(vector))))),
  ]
  const products = eachAt(locals, first, (vector) => [
    ...read(locals, vector),
    ...set(q(vector)),
    ...write(locals, vector, product(locals, get(q(vector)))),
  ])
  const seconds = two((at) => [
    ...eachAt(locals, first, (vector) => [...read(locals, vector), ...set(q(vector))]),
    // All are read before the first is stored, or V8 would not take two of them at once.
    ...eachAt(locals, at, (vector) => [
      ...read(locals, vector),
      ...get(q(vector)),
      ...xor,
      ...set(p(vector)),
    ]),
    ...eachAt(locals, at, (vector) => write(locals, vector, get(p(vector)))),
  ])
  const loops = [sums, products, ...(seconds.length > 0 ? [seconds] : [])]
  const body = [
    ...filled(polynomial_byte),
    ...set(polynomial),
    ...filled(0x0f),
    ...set(low_half),
    ...get(tables),
    ...load(0),
    ...set(table_low),
    ...get(tables),
    ...load(1),
    ...set(table_high),
    ...blocks(
      locals,
      length,
      loops.map((code) => (end: number) => loop(locals, end, code)),
    ),
  ]
  return moduleOf(shards + 4, locals.count, body)
}
