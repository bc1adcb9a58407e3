/**
 * Writes WebAssembly modules by hand: functions of 32-bit integers with vectors inside, which use
 * one memory that they are given. What is written here is what a compiler would have to be for.
 *
 * Code is bytes in the order of the stack machine. Source: the WebAssembly specification 2.0, 5.
 */

export type Code = ReadonlyArray<number>

export interface WasmFunction {
  /** All are i32; locals 0 to `parameters` - 1. */
  readonly parameters: number
  /** Local variables after the parameters: first those of i32, then those of v128. */
  readonly integers: number
  readonly vectors: number
  readonly body: Code
}

/** What a function is from outside: all numbers are i32, and it answers nothing. */
type Called = (...numbers: ReadonlyArray<number>) => void

/** Compiles functions once; answers what makes them work on a memory, each by its name. */
export const wasmProgram = <Name extends string>(
  functions: Readonly<Record<Name, WasmFunction>>,
) => {
  const compiled = new WebAssembly.Module(wasmModule(functions))
  return (memory: WebAssembly.Memory) => {
    const { exports } = new WebAssembly.Instance(compiled, { env: { memory } })
    // `wasmModule` exports each function by its name, and nothing else.
    return exports as Record<Name, Called>
  }
}

/** The bytes of a module that imports `memory` of `env` and exports each function by its name. */
const wasmModule = (named: Readonly<Record<string, WasmFunction>>): Uint8Array<ArrayBuffer> => {
  const functions = Object.values(named)
  const types = functions.map(({ parameters }) => [
    0x60,
    ...list(Array.from({ length: parameters }, () => [type_i32])),
    0,
  ])
  const memory = [...name("env"), ...name("memory"), 0x02, 0x00, 1]
  const exports = Object.keys(named).map((of, index) => [...name(of), 0x00, ...unsigned(index)])
  const codes = functions.map(({ integers, vectors, body }) => {
    const locals = list([
      [...unsigned(integers), type_i32],
      [...unsigned(vectors), type_v128],
    ])
    const code = [...locals, ...body, end]
    return [...unsigned(code.length), ...code]
  })
  return Uint8Array.from([
    0x00,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...section(1, types),
    ...section(2, [memory]),
    ...section(
      3,
      functions.map((_, index) => unsigned(index)),
    ),
    ...section(7, exports),
    ...section(10, codes),
  ])
}

const type_i32 = 0x7f
const type_v128 = 0x7b
const end = 0x0b

/** LEB128 of a number from 0 to 2^32 - 1. */
const unsigned = (value: number): Code =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]

const signed = (value: number): Code =>
  value >= -0x40 && value < 0x40 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)]

const list = (items: ReadonlyArray<Code>): Code => [...unsigned(items.length), ...items.flat()]
const name = (text: string): Code => list([...Buffer.from(text)].map((byte) => [byte]))
const section = (id: number, items: ReadonlyArray<Code>): Code => {
  const body = list(items)
  return [id, ...unsigned(body.length), ...body]
}

export const get = (local: number): Code => [0x20, ...unsigned(local)]
export const set = (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)]
export const integer = (value: number): Code => [0x41, ...signed(value)]
const add = (one: Code, other: Code): Code => [...one, ...other, 0x6a]
export const load = (address: Code, offset = 0): Code => [...address, 0x28, 2, ...unsigned(offset)]

export const store = (address: Code, value: Code, offset = 0): Code => [
  ...address,
  ...value,
  0x36,
  2,
  ...unsigned(offset),
]

/** Adds to a local of i32. */
export const advance = (local: number, by: Code): Code => set(local, add(get(local), by))

/** Runs the body as often as the local says, at least once, and counts it down to 0. */
export const times = (local: number, body: Code): Code => [
  0x03,
  0x40,
  ...body,
  ...set(local, add(get(local), integer(-1))),
  ...get(local),
  0x0d,
  0,
  end,
]

/** One instruction on vectors: its operands, then its number, then what it holds itself. */
const simd =
  (opcode: number) =>
  (...operands: ReadonlyArray<Code>): Code => [...operands.flat(), 0xfd, ...unsigned(opcode)]
const simdAt =
  (opcode: number, align: number) =>
  (address: Code, offset = 0): Code => [...simd(opcode)(address), align, ...unsigned(offset)]

/** 16 bytes; no alignment is promised. */
export const loadVector = simdAt(0, 0)
export const storeVector = (address: Code, vector: Code, offset = 0): Code => [
  ...simd(11)(address, vector),
  0,
  ...unsigned(offset),
]
export const bytesVector = (bytes: ReadonlyArray<number>): Code => [...simd(12)(), ...bytes]
export const splat = (value: number): Code => simd(17)(integer(value))
/**
 * Each byte of the second says which byte of the first; 0x80 and above: 0. Of 16 to 127 it is the
 * processor's to say, so there are none: where there might be, each would be looked at beforehand.
 */
export const swizzle = simd(256)
export const addVectors = simd(174)
/** Of 16-bit numbers: the products of neighbours, added. */
export const dot = simd(186)
export const shiftLeft = simd(171)
export const shiftRight = simd(172)
export const narrowTo16 = simd(133)
/** To bytes without sign: below 0 becomes 0, above 255 becomes 255. */
export const narrowToBytes = simd(102)
export const lowBytesTo16 = simd(137)
export const highBytesTo16 = simd(138)
/** 8 bytes without sign, as 16-bit numbers. */
export const loadBytesTo16 = simdAt(2, 0)
/** 8 bytes of a vector to an address: its lower half, or its upper one. */
export const storeHalf = (address: Code, vector: Code, half: 0 | 1, offset = 0): Code => [
  ...simd(91)(address, vector),
  0,
  ...unsigned(offset),
  half,
]
/** 16-bit numbers, each pair of them alike. */
export const pairsVector = (one: number, other = one): Code =>
  bytesVector([
    ...new Uint8Array(Int16Array.from({ length: 8 }, (_, n) => (n % 2 ? other : one)).buffer),
  ])
/** Bytes of two vectors, 0 to 15 of the first and 16 to 31 of the second. */
export const shuffle = (bytes: ReadonlyArray<number>, one: Code, other: Code): Code => [
  ...simd(13)(one, other),
  ...bytes,
]
/** A 16-bit number, eight times. */
export const splat16 = simd(16)
export const subtractVectors = simd(177)
export const add16 = simd(142)
export const subtract16 = simd(145)
export const multiply16 = simd(149)
export const shiftLeft16 = simd(139)
export const shiftRightUnsigned16 = simd(141)
export const either = simd(80)
export const low16To32Signed = simd(167)
export const high16To32Signed = simd(168)
/** Of 16-bit numbers: their product in 15 bits after the point, rounded. */
export const multiplyRounded = simd(130)
