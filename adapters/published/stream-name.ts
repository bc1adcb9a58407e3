/** Name and subjects of the stream of published events. */
export const events_stream = "ALMANAC_EVENTS"
export const events_subject = "events.>"
