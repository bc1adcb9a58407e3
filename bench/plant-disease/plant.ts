/**
 * Suite 12: plant disease prediction compared with bare ONNX Runtime, tfjs, and sharp's decoding.
 */
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { monitorEventLoopDelay } from "node:perf_hooks"
import sharp from "sharp"
import type { OpenedModel } from "#models"
import { decode, decodeFast, resampler } from "#predictor"
import { machine } from "../harness/machine.ts"
import { drive, type Effort, median } from "../harness/round.ts"
import { interleave, type Measured, orSkip } from "../harness/series.ts"
import type { Settings, Suite } from "../harness/suite.ts"
import { type Columns, table } from "../harness/table.ts"
import { httpSeat } from "./http.ts"
import { openNetwork, writeMobileNet, writeTutorial } from "./network.ts"
import { bareSeat, type PlantSeat, predictorSeat } from "./seats.ts"
import { startSeats, without_plants } from "./start.ts"

const side = 224
const in_flight = 16
const batch = 8
const options = { pixels_max: 50_000_000, auto_orient: false }

/** Noise as smooth and as rough as a photo. */
const photo = (width: number, height: number) => {
  const rgb = Buffer.alloc(width * height * 3)
  let state = 1
  for (let i = 0; i < rgb.length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    const [x, y] = [Math.floor(i / 3) % width, Math.floor(i / 3 / width)]
    rgb[i] = 118 + 90 * Math.sin(x / 50 + (i % 3)) * Math.cos(y / 70) + (state >>> 27)
  }
  return sharp(rgb, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 85 })
    .toBuffer()
}

const columns = (rate: string, ours: string): Columns => ({
  rate,
  per_run: 1,
  ours,
  latency: true,
})

const start_title = "Startup of the whole server until ready"

type Seats = ReadonlyArray<() => Promise<PlantSeat>>

/** Measures one table: starts its contestants, and stops them afterwards. */
const contest = async (
  { folder, rounds, seconds, onEnd }: Settings,
  title: string,
  ours: string,
  seats: Seats,
  rate = "images/s",
): Promise<{ measured: Measured; text: string }> => {
  const started: Array<PlantSeat> = []
  for (const start of seats) {
    const seat = await orSkip(title, start)
    if (seat === undefined) continue
    onEnd(seat.stop)
    started.push(seat)
  }
  const effort: Effort = { in_flight: 1, seconds, runs_max: Number.MAX_SAFE_INTEGER }
  const measured = await interleave(started, effort, rounds, folder)
  await Promise.all(started.map(({ stop }) => stop()))
  return { measured, text: `${title}:\n\n${table(measured, columns(rate, ours))}` }
}

const local = (name: string, run: () => Promise<unknown>): PlantSeat => ({
  name,
  round: (effort) => drive(async () => void (await run()), 0, { ...effort, in_flight: 1 }),
  stop: async () => undefined,
})

const photoContest = async (settings: Settings) => {
  const large = await photo(4000, 3000)
  const resized = resampler(side)
  const exact = async () => {
    const image = await decode(large, options)
    if ("rgb" in image) resized(image, "bicubic")
  }
  const peer = "sharp's full decoding"
  return contest(settings, "A photo of 12 megapixels to 224 by 224", peer, [
    async () => local(peer, () => sharp(large).raw().toBuffer()),
    async () => local("exact", exact),
    async () => local("fast", () => decodeFast(large, options, side)),
  ])
}

/** The 99th percentile of the event loop's delay during `run`, in milliseconds. */
const lateness = async (run: () => Promise<unknown>) => {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await run()
  delay.disable()
  return delay.percentile(99) / 1e6
}

const loop = async (model: OpenedModel, image: Uint8Array, seconds: number) => {
  const seat = await predictorSeat("almanac", model, image, in_flight)
  const effort = { in_flight, seconds, runs_max: Number.MAX_SAFE_INTEGER }
  const idle = await lateness(() => new Promise((resolve) => setTimeout(resolve, seconds * 1000)))
  const busy = await lateness(() => seat.round(effort))
  await seat.stop()
  return (
    `Event loop of the process, p99 of its delay: ${idle.toFixed(2)} ms idle, ` +
    `${busy.toFixed(2)} ms with ${in_flight} images in flight.`
  )
}

/** The difference of the median p50 between the first two series. */
const difference = ({ series }: Measured) => {
  const p50 = series.map(({ rounds }) => median(rounds.map(({ p50_ms }) => p50_ms)))
  return ((p50[0] ?? Number.NaN) - (p50[1] ?? Number.NaN)).toFixed(2)
}

/** A description of the measurements for readers of the tables. */
const spentOf = (
  { rounds, seconds }: Settings,
  image: Uint8Array,
  [first, , third]: ReadonlyArray<{ readonly measured: Measured }>,
) =>
  `${rounds} rounds of ${seconds} s each, interleaved, after one discarded; a JPEG of 256 by ` +
  `256 pixels (${image.length} bytes) from memory; random weights. MobileNetV2 is a model.json ` +
  "as Keras writes it, the tutorial's network an .h5; bare ONNX Runtime runs the ONNX file that " +
  "the service converts them to. It receives numbers and decodes nothing. With sharp, the same " +
  "JPEG is decoded, resized (sharp's cubic, not Pillow's) and divided in the same threads before " +
  "each run. Difference to bare ONNX Runtime in p50 of one image: " +
  `${first ? difference(first.measured) : ""} ms for MobileNetV2, ` +
  `${third ? difference(third.measured) : ""} ms for the tutorial's network.`

export const plant: Suite = async (settings) => {
  const { folder, seconds } = settings
  const cores = availableParallelism()
  const tutorial = await openNetwork(await writeTutorial(join(folder, "tutorial")))
  const mobile_path = await writeMobileNet(join(folder, "mobilenet"), false)
  const folded_path = await writeMobileNet(join(folder, "mobilenet-folded"), true)
  const mobile = await openNetwork(mobile_path)
  const small = await photo(256, 256)
  const us = "almanac"
  const bare = ({ onnx_path }: OpenedModel, threads: number, size: number, workers: number) =>
    bareSeat(
      `bare ONNX Runtime, ${workers} x ${threads} threads, batches of ${size}`,
      { runtime: "onnxruntime", model_path: onnx_path, threads, batch: size },
      workers,
    )
  /** Decodes the same JPEG with sharp before each run: a service without Almanac. */
  const served = ({ onnx_path }: OpenedModel, threads: number, size: number, workers: number) =>
    bareSeat(
      `sharp and ONNX Runtime, ${workers} x ${threads} threads, batches of ${size}`,
      { runtime: "onnxruntime", model_path: onnx_path, threads, batch: size, image: small },
      workers,
    )
  /** It has one thread, so requests wait for one another. */
  const tfjs = (name: string, model_path: string) => () =>
    bareSeat(name, { runtime: "tfjs", model_path, threads: 1, batch: 1 }, 1)
  const tfjs_seats = [
    tfjs("tfjs, WebAssembly", mobile_path),
    tfjs("tfjs, WebAssembly, normalizations folded", folded_path),
  ]
  const http = (clients: number) => httpSeat("almanac, HTTP", folder, mobile_path, small, clients)
  const oneByOne = { batch_max: 1 }
  const all = [
    await contest(settings, "MobileNetV2, one image at a time", us, [
      () => predictorSeat(us, mobile, small, 1),
      () => bare(mobile, 1, 1, 1),
      () => served(mobile, 1, 1, 1),
      ...tfjs_seats,
      () => http(1),
    ]),
    await contest(settings, `MobileNetV2, ${in_flight} in flight`, us, [
      () => predictorSeat(us, mobile, small, in_flight),
      () => bare(mobile, 1, 1, cores),
      () => bare(mobile, cores, batch, 1),
      () => served(mobile, 1, 1, cores),
      ...tfjs_seats,
      () => http(in_flight),
    ]),
    await contest(settings, "Tutorial network, one image at a time", us, [
      () => predictorSeat(us, tutorial, small, 1),
      () => bare(tutorial, cores, 1, 1),
      () => served(tutorial, cores, 1, 1),
    ]),
    await contest(settings, `Tutorial network, ${in_flight} in flight`, us, [
      () => predictorSeat(us, tutorial, small, in_flight),
      () => predictorSeat("almanac, one by one", tutorial, small, in_flight, oneByOne),
      () => bare(tutorial, cores, 1, 1),
      () => bare(tutorial, 1, 1, cores),
      () => bare(tutorial, cores, batch, 1),
      () => bare(tutorial, 1, batch, cores),
      () => served(tutorial, cores, batch, 1),
    ]),
    await photoContest(settings),
    await contest(settings, start_title, without_plants, startSeats(folder), "starts/s"),
  ]
  const spent = spentOf(settings, small, all)
  const late = await loop(mobile, small, seconds)
  const measured = all.map((one) => one.measured)
  const texts = all.map(({ text }) => text)
  return [await machine(folder, measured, []), spent, late, ...texts].join("\n\n")
}
