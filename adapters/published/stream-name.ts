/** The stream of published events and what its messages are called. */
export const events_stream = "ALMANAC_EVENTS"
export const events_subject = "events.>"
