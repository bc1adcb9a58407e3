/** Contestants; each runs in its own process (stage.ts). */

/** The resources of a contestant; the bench starts and stops all of them. */
export interface Home {
  /** An empty folder of its own, on the measured disk. */
  readonly folder: string
  /** The folder of PostgreSQL's socket, if the suite has a server. */
  readonly postgres?: string
  /** The address of a JetStream server that holds the messages of commit.ts. */
  readonly nats?: string
}

export interface Running {
  /** Does the i-th unit of work (i counts on from 0 over all rounds), or rejects. */
  readonly run: (i: number) => Promise<void>
  readonly stop: () => Promise<void>
}

export interface Contestant {
  readonly name: string
  /**
   * A rejection means that the contestant cannot take part here; its message is the reason to
   * print.
   */
  readonly start: (home: Home) => Promise<Running>
}
