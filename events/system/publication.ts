/** Anchors of the numbering of published events. Stream: system.publication.log. */
import type { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Anchor } from "#schemas/system/publication.ts"

export const publication_stream = "system.publication.log"

export const PublicationAnchored = message("PublicationAnchored", Anchor)

export const PublicationEvent = PublicationAnchored
export type PublicationEvent = Schema.Schema.Type<typeof PublicationEvent>
