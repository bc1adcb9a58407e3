/** POST /predict. Source: document 3 §2 C, §4 C; decisions of document 3, plant errors. */
import { Readable } from "node:stream"
import sharp from "sharp"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { until } from "../world/http.ts"
import { imageOf, pngs } from "./predicting.ts"
import {
  boundary,
  file_head,
  form_type,
  formOf,
  type Predicts,
  partOf,
  startPredicting,
  whole,
} from "./served.ts"

const image_bytes_max = 100_000
const form_bytes = 64 * 1024

let served: Predicts
let jpeg: Buffer
beforeAll(async () => {
  served = await startPredicting({ plant: { image_bytes_max, image_pixels_max: 40_000 } })
  jpeg = await imageOf("blue").jpeg().toBuffer()
})
afterAll(() => served.stop())
afterEach(async () => {
  await served.facts()
  await until(() => served.inFlight() === 0)
})

const one_image = "The form must have exactly one image, as a file in the field 'file'."

/** Asserts a rejection with only `{error}`, and no fact. */
const refused = async (answer: Response, status: number, error: string | RegExp) => {
  const text = await answer.text()
  expect([answer.status, text]).toEqual([status, expect.any(String)])
  expect(JSON.parse(text)).toEqual({ error: expect.stringMatching(error) })
  expect(answer.headers.get("content-type")).toBe("application/json")
  expect(await served.facts()).toEqual([])
}

const exactly = (text: string) => new RegExp(`^${text.replaceAll(/[.()/]/g, "\\$&")}$`)

/** Sends a handwritten body. */
const send = (body: Buffer | string, headers: Record<string, string> = form_type) =>
  served.fetch("/predict", { method: "POST", headers, body: Uint8Array.from(Buffer.from(body)) })

describe("a prediction", () => {
  it("is {prediction} and nothing else", async () => {
    for (const colour of ["red", "green", "blue"] as const) {
      const answer = await served.post(formOf({ bytes: pngs[colour] }))
      expect(answer.status).toBe(200)
      expect(answer.headers.get("content-type")).toBe("application/json")
      expect(await answer.text()).toBe(JSON.stringify({ prediction: colour }))
    }
  })

  it("names its model and its time in headers, and is not to be kept", async () => {
    const { headers } = await served.post(formOf({ bytes: pngs.red }))
    expect(headers.get("x-model-sha256")).toBe("c".repeat(64))
    expect(headers.get("server-timing")).toMatch(/^predict;dur=\d+\.\d$/)
    expect(headers.get("cache-control")).toBe("no-store")
  })

  it.each(["application/octet-stream", "image/jpeg", "image/jpg", "image/png", "IMAGE/PNG"])(
    "accepts a file of the content type %s, with either format",
    async (type) => {
      for (const bytes of [pngs.blue, jpeg]) {
        const answer = await served.post(formOf({ bytes, type, name: "leaf" }))
        expect(await answer.json()).toEqual({ prediction: "blue" })
      }
    },
  )

  it.each(["leaf.jpg", "leaf.jpeg", "leaf.png", "LEAF.JPG", "leaf", "my.garden/leaf", "a.gif.png"])(
    "accepts a file named %s, with either format",
    async (name) => {
      for (const bytes of [pngs.blue, jpeg]) {
        const answer = await served.post(formOf({ bytes, name }))
        expect(await answer.json()).toEqual({ prediction: "blue" })
      }
    },
  )

  it.each([
    ["whose ending is beyond 255 characters", `tomato.leaf_${"a".repeat(300)}.jpg`],
    ["without an ending", "a".repeat(300)],
  ])("takes a file by a long name %s", async (_, name) => {
    const answer = await served.post(formOf({ bytes: jpeg, name }))
    expect(await answer.json()).toEqual({ prediction: "blue" })
  })

  it("takes a file without a type, and an image without a name", async () => {
    const heads = [
      file_head,
      'Content-Disposition: form-data; name="file"\r\nContent-Type: image/png',
    ]
    for (const head of heads) {
      const answer = await send(whole(partOf(head, pngs.green)))
      expect(await answer.json()).toEqual({ prediction: "green" })
    }
  })

  it("leaves other fields alone", async () => {
    const form = formOf({ bytes: pngs.red })
    form.append("note", "from the garden")
    expect(await (await served.post(form)).json()).toEqual({ prediction: "red" })
  })

  it("takes an image that comes byte by byte, of unknown length", async () => {
    const body = whole(partOf(file_head, pngs.red))
    const pieces = Readable.from(Array.from(body, (byte) => Uint8Array.of(byte)))
    const answer = await served.fetch("/predict", {
      ...{ method: "POST", headers: form_type, duplex: "half" },
      // Node's own stream is valid for its fetch.
      body: Readable.toWeb(pieces) as ReadableStream,
    })
    expect(await answer.json()).toEqual({ prediction: "red" })
  })

  it("takes an image of the largest size", async () => {
    // Bytes after the end of a PNG are ignored.
    const bytes = Buffer.concat([pngs.red], image_bytes_max)
    expect(bytes).toHaveLength(image_bytes_max)
    expect((await served.post(formOf({ bytes }))).status).toBe(200)
  })
})

describe("400", () => {
  it("is a form without a file", async () => {
    await refused(await served.post(formOf()), 400, exactly(one_image))
    await refused(await send(whole()), 400, exactly(one_image))
    const text = new FormData()
    text.append("file", "leaf.png")
    await refused(await served.post(text), 400, exactly(one_image))
  })

  it("is a request without a body", async () => {
    await refused(await served.fetch("/predict", { method: "POST" }), 400, exactly(one_image))
    await refused(await send("", form_type), 400, /./)
  })

  it("is a field of files where none was chosen", async () => {
    const head =
      'Content-Disposition: form-data; name="file"; filename=""\r\n' +
      "Content-Type: application/octet-stream"
    await refused(await send(whole(partOf(head, ""))), 400, exactly(one_image))
  })

  it("is more than one file, with any contents", async () => {
    const two = [{ bytes: pngs.red }, { bytes: pngs.red }]
    await refused(await served.post(formOf(...two)), 400, exactly(one_image))
    const odd = [{ bytes: pngs.red, type: "image/gif" }, { bytes: pngs.red }]
    await refused(await served.post(formOf(...odd)), 400, exactly(one_image))
  })

  it("is a file in another field", async () => {
    const error = "The image must be in the field 'file', not 'image'."
    await refused(await served.post(formOf({ bytes: pngs.red, field: "image" })), 400, error)
    const both = [{ bytes: pngs.red }, { bytes: pngs.red, field: "image" }]
    await refused(await served.post(formOf(...both)), 400, error)
  })

  it("is a form without a boundary", async () => {
    const headers = { "content-type": "multipart/form-data" }
    await refused(await send(whole(partOf(file_head, pngs.red)), headers), 400, /boundary/)
  })

  it.each([
    [
      "another boundary",
      whole(partOf(file_head, pngs.red)).toString("latin1").replaceAll(boundary, "y"),
    ],
    ["no end", partOf(file_head, pngs.red)],
    [
      "no end after a whole image",
      Buffer.concat([partOf(file_head, pngs.red), Buffer.from(`--${boundary}\r\n`)]),
    ],
    ["an end in the middle of the image", whole(partOf(file_head, pngs.red)).subarray(0, 150)],
    ["no name of the field", whole(partOf("Content-Disposition: form-data", pngs.red))],
    ["a head that is none", whole(partOf("no head at all", pngs.red))],
    ["text", "file=leaf.png"],
  ])("is a form that has %s", async (_, body) => {
    await refused(await send(body), 400, /^The form is malformed or incomplete\.$/)
  })

  it("is a form with too many fields, or a field that is too long", async () => {
    const many = formOf({ bytes: pngs.red })
    for (let n = 0; n < 20; n++) many.append(`f${n}`, "x")
    await refused(await served.post(many), 400, /too many fields/)
    const long = formOf({ bytes: pngs.red })
    long.append("note", "x".repeat(20_000))
    await refused(await served.post(long), 400, /too long/)
  })

  it("is a body that breaks off", async () => {
    const head = "POST /predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    const type = `Content-Type: ${form_type["content-type"]}\r\nTransfer-Encoding: chunked\r\n\r\n`
    const response = await served.raw(head, type, "zz\r\n")
    expect(response).toMatch(/^HTTP\/1\.1 400 /)
    expect(response).toMatch(/\{"error":"[^"]+"\}$/)
  })
})

describe("405", () => {
  it.each(["GET", "PUT", "DELETE", "PATCH"])("is %s", async (method) => {
    const answer = await served.fetch("/predict", { method })
    expect(answer.headers.get("allow")).toBe("POST")
    await refused(answer, 405, /not allowed on this path; use POST/)
  })
})

describe("413", () => {
  it("is an image of one byte too many", async () => {
    const bytes = Buffer.concat([pngs.red], image_bytes_max + 1)
    await refused(
      await served.post(formOf({ bytes })),
      413,
      exactly(`The image is larger than ${image_bytes_max} bytes.`),
    )
  })

  it("is a length that is declared, before anything of it comes", async () => {
    const length = image_bytes_max + form_bytes + 1
    const response = await served.raw(
      "POST /predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\n",
      `Content-Type: ${form_type["content-type"]}\r\nContent-Length: ${length}\r\n\r\n`,
    )
    expect(response).toMatch(/^HTTP\/1\.1 413 /)
    expect(response).toContain(`larger than ${length - 1} bytes`)
  })

  it("is a body of unknown length that goes on, without its end being awaited", async () => {
    let sent = 0
    const piece = Buffer.alloc(16_384)
    const endless = async function* () {
      yield partOf(file_head, pngs.red).subarray(0, -2)
      for (; sent < 1000 * piece.length; sent += piece.length) yield piece
    }
    const answer = await served.fetch("/predict", {
      ...{ method: "POST", headers: form_type, duplex: "half" },
      // Node's own stream is valid for its fetch.
      body: Readable.toWeb(Readable.from(endless())) as ReadableStream,
    })
    await refused(answer, 413, /larger than 100000 bytes|too large/)
    expect(sent).toBeLessThan(1000 * piece.length)
  })

  it("is an image of too many pixels, by its head", async () => {
    const bytes = await imageOf("red", 201, 200).png().toBuffer()
    await refused(await served.post(formOf({ bytes })), 413, /201 by 200 pixels/)
  })
})

describe("415", () => {
  it("is a body that is no form", async () => {
    const json = { "content-type": "application/json" }
    await refused(await send("{}", json), 415, /must be multipart\/form-data/)
    await refused(await send(pngs.red, { "content-type": "image/png" }), 415, /multipart/)
    const response = await served.raw(
      "POST /predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
    )
    expect(response).toMatch(/^HTTP\/1\.1 415 /)
    expect(response).toContain("multipart/form-data")
  })

  it.each(["image/gif", "image/svg+xml", "image/webp", "text/plain", "application/pdf"])(
    "is a file that calls itself %s",
    async (type) => {
      await refused(
        await served.post(formOf({ bytes: pngs.red, type })),
        415,
        `type is ${type.replace("+", ".")}. `,
      )
    },
  )

  it.each(["leaf.gif", "leaf.svg", "leaf.png.exe", "leaf.PDF", "leaf.webp"])(
    "is a file by the name of %s",
    async (name) => {
      await refused(
        await served.post(formOf({ bytes: pngs.red, name })),
        415,
        /The file name ends in \./,
      )
    },
  )

  it("is a file by the end of a long name, which the message shortens", async () => {
    const long = "a".repeat(300)
    const ends = async (name: string) => served.post(formOf({ bytes: pngs.red, name }))
    await refused(await ends(`${long}.gif`), 415, /^The file name ends in \.gif\. Accepted/)
    await refused(await ends(`${long}.jpg.gif`), 415, /^The file name ends in \.gif\. Accepted/)
    await refused(
      await ends(`a.jpg.${long}`),
      415,
      /^The file name ends in \.a{100}\.{3}\. Accepted/,
    )
    const typed = formOf({ bytes: pngs.red, type: `image/${long}` })
    await refused(await served.post(typed), 415, /^The file's type is image\/a{94}\.{3}\. Accepted/)
    const elsewhere = formOf({ bytes: pngs.red, field: long })
    await refused(await served.post(elsewhere), 400, /not 'a{100}\.\.\.'\.$/)
  })

  it("is content that is no JPEG or PNG, under any name", async () => {
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    const gif = await sharp(pngs.red).gif().toBuffer()
    const webp = await sharp(pngs.red).webp().toBuffer()
    for (const bytes of [svg, gif, webp, Buffer.from("text"), Buffer.alloc(0)]) {
      const form = formOf({ bytes, name: "leaf.jpg", type: "image/jpeg" })
      await refused(await served.post(form), 415, /neither a JPEG nor a PNG/)
    }
  })
})

describe("422", () => {
  it("is an image that is cut off, or damaged", async () => {
    const cut = jpeg.subarray(0, jpeg.length - 40)
    const damaged = Buffer.from(pngs.red)
    damaged.fill(0, 40, 60)
    for (const bytes of [cut, damaged, jpeg.subarray(0, 4)]) {
      await refused(await served.post(formOf({ bytes })), 422, /cannot be decoded/)
    }
  })
})

describe("500", () => {
  it("is a network that returns no number, which is logged and not sent", async () => {
    const broken = await startPredicting({ network: { ends: "nan" } })
    const answer = await broken.post(formOf({ bytes: pngs.red }))
    expect(answer.status).toBe(500)
    expect(await answer.json()).toEqual({
      error: "The network failed on this image. The server's log has the cause.",
    })
    expect(broken.logged.join("\n")).toContain("A prediction failed: ")
    expect(await broken.facts()).toEqual([])
    const fine = await broken.post(formOf({ bytes: pngs.green }))
    expect(fine.status).toBe(200)
    await broken.stop()
  })
})

describe("503", () => {
  it("is a full queue, with when to come again; the others are answered", async () => {
    const small = await startPredicting({ plant: { queue_max: 1, workers: 1 } })
    const answers = await Promise.all(
      Array.from({ length: 24 }, () => small.post(formOf({ bytes: pngs.green }))),
    )
    const statuses = answers.map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200, 503]))
    const successes = answers.filter(({ status }) => status === 200)
    for (const answer of answers.filter(({ status }) => status === 503)) {
      expect(await answer.json()).toEqual({ error: "Too many images are waiting." })
      expect(answer.headers.get("retry-after")).toMatch(/^([1-9]|[12]\d|30)$/)
    }
    expect(await small.facts()).toHaveLength(successes.length)
    await small.stop()
  })

  it("is more on its way into memory than there is for all together", async () => {
    const held_bytes_max = 300_000
    const bytes = Buffer.concat([pngs.green], 150_000)
    const tight = await startPredicting({ held_bytes_max, plant: { image_bytes_max: 200_000 } })
    const leaving = new AbortController()
    const part = partOf(file_head, bytes)
    let sent = 0
    const hanging = async function* () {
      yield part
      sent++
      await new Promise(() => undefined)
    }
    const slow = [1, 2].map(() =>
      tight
        .fetch("/predict", {
          ...{ method: "POST", headers: form_type, duplex: "half", signal: leaving.signal },
          // Node's own stream is valid for its fetch.
          body: Readable.toWeb(Readable.from(hanging())) as ReadableStream,
        })
        .catch(() => undefined),
    )
    await until(() => sent === 2 && tight.inFlight() > 0)
    let answer = await tight.post(formOf({ bytes }))
    for (let n = 0; n < 50 && answer.status === 200; n++)
      answer = await tight.post(formOf({ bytes }))
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { error: "The server is receiving too many images. Try again." },
    ])
    expect(answer.headers.get("retry-after")).toBe("1")
    leaving.abort()
    await Promise.all(slow)
    await until(() => tight.inFlight() === 0)
    // Aborted requests no longer occupy anything.
    for (let n = 0; n < 5; n++) expect((await tight.post(formOf({ bytes }))).status).toBe(200)
    await tight.stop()
  })
})
