/** A refused list. The current list stays. */
export class ListRefused extends Error {
  override readonly name = 'ListRefused'
  readonly code: ListRefusal

  constructor(code: ListRefusal, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

export type ListRefusal =
  | 'unreachable'
  | 'malformed'
  | 'too-large'
  | 'empty'
  | 'shrunk'
  | 'undated'
  | 'future'
  | 'older'

/** A parsed list. */
export interface ReadList {
  readonly format: 'sdn-advanced-xml' | 'plain'
  /** The list's date, `YYYY-MM-DD`; optional in a plain list. */
  readonly listDate: string | undefined
  /** EVM addresses, in lower case. */
  readonly addresses: ReadonlySet<string>
  /** Number of malformed EVM addresses. They are omitted, and an operator should check them. */
  readonly malformed: number
}

/** A streaming parser for one format. */
export interface ListReader {
  write(chunk: string): void
  end(): ReadList
}

const addressesMax = 1_000_000

/** Adds an EVM address, in any letter case, and ignores addresses of other chains. Returns false for a malformed EVM address. */
export function addEntry(addresses: Set<string>, entry: string): boolean {
  if (!/^0x[0-9a-f]{40}$/i.test(entry)) return !/^0x/i.test(entry)
  addresses.add(entry.toLowerCase())
  if (addresses.size > addressesMax) throw new ListRefused('too-large', 'the list has too many addresses')
  return true
}
