/** Why a list was not taken. The list that was there stays. */
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

/** What a list says. */
export interface ReadList {
  readonly format: 'sdn-advanced-xml' | 'plain'
  /** The day that it bears, `YYYY-MM-DD`; a plain list need not. */
  readonly listDate: string | undefined
  /** EVM addresses, in lower case. */
  readonly addresses: ReadonlySet<string>
  /** Entries that begin as an EVM address does and are none: they are left out, and an operator should look. */
  readonly malformed: number
}

/** Reads one format as it arrives. */
export interface ListReader {
  write(chunk: string): void
  end(): ReadList
}

const addressesMax = 1_000_000

/**
 * Takes an entry as the sources write them: an EVM address in whatever letter case is added, another chain's is passed over. False for one
 * with a slip in it.
 */
export function addEntry(addresses: Set<string>, entry: string): boolean {
  if (!/^0x[0-9a-f]{40}$/i.test(entry)) return !/^0x/i.test(entry)
  addresses.add(entry.toLowerCase())
  if (addresses.size > addressesMax) throw new ListRefused('too-large', 'the list holds too many addresses')
  return true
}
