/** Reads an address's search parameter that is a text of a sensible length. */
export function isSearchText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 2_048
}

export interface OpenSearch {
  /** The id of the record that is open in the sheet. */
  readonly open?: string
}

/** The record that an address opens beside its list. */
export function readOpen({ open }: Readonly<Record<string, unknown>>): OpenSearch {
  return isSearchText(open) ? { open } : {}
}
