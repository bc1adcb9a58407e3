/** What stands against what: each contestant runs in a process of its own (stage.ts). */

/** What a contestant is given: everything it may use is started and stopped by the bench. */
export interface Home {
  /** An empty folder of its own, on the disk that is measured. */
  readonly folder: string
  /** The folder of PostgreSQL's socket, where that suite has a server. */
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
  /** A rejection means that it cannot take part here; its message is the line that says why. */
  readonly start: (home: Home) => Promise<Running>
}
