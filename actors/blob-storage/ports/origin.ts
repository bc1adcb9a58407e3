/** The requester, as recorded in the journal and the audit log. */
export interface BlobOrigin {
  readonly actor: string
  readonly request_id: string
  readonly correlation_id: string
}

/** The origin of the store's own actions, such as quarantining a corrupt copy. */
export const store_origin: BlobOrigin = {
  actor: "process:blob-store",
  request_id: "",
  correlation_id: "",
}
