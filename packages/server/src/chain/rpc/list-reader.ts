import { collectBytes } from '@purser/protocol'
import { type BodyReader, OutboundError } from '../../platform/outbound.ts'
import { isRecord } from './responses.ts'

/** Bytes of JSON outside the lists that are read entry by entry, and of one entry. */
const restBytesMax = 8_388_608
/** Bytes that the kept parts of all entries may take. */
const keptBytesMax = 33_554_432
/** Added to the length of each kept entry for its object. */
const entryBytes = 64

const [quote, backslash, colon, comma, open, close] = [0x22, 0x5c, 0x3a, 0x2c, 0x5b, 0x5d]
const [openBrace, closeBrace] = [0x7b, 0x7d]

/**
 * Reads a JSON-RPC response with long lists: the `logs` of a receipt, or a `result` that is a list. Each entry of such a list is parsed by itself
 * as it arrives, and of a receipt's log only what features use is kept, so that neither a text of many megabytes nor a long parse is needed.
 * Everything else is parsed at the end and has the usual limit.
 */
export function createListReader(): BodyReader {
  const rest = collectBytes({ bytesMax: restBytesMax, tinyChunksMax: Number.POSITIVE_INFINITY })
  const scanner = createScanner()
  const lists: unknown[][] = []
  let keptBytes = 0
  /** The list that is being read, and the parts of its current entry. */
  let list: unknown[] | undefined
  let entry: Uint8Array[] = []
  let bytesOfEntry = 0

  const addRest = (part: Uint8Array): void => {
    // A copy: the part alone would keep its whole chunk.
    if (rest.take(part) !== 'taken') throw new OutboundError('too-large')
  }
  const addEntry = (part: Uint8Array): void => {
    bytesOfEntry += part.length
    if (bytesOfEntry > restBytesMax) throw new OutboundError('too-large')
    entry.push(part)
  }
  const endEntry = (): void => {
    const text = textOf(entry).trim()
    entry = []
    bytesOfEntry = 0
    if (text === '') return
    const kept =
      scanner.listName() === logsName ? keepOfReceipt(parse(text)) : { value: parse(text), bytes: text.length }
    keptBytes += kept.bytes + entryBytes
    if (keptBytes > keptBytesMax) throw new OutboundError('too-large')
    list?.push(kept.value)
  }

  return {
    write(chunk) {
      let start = 0
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at] ?? 0
        if (list === undefined) {
          if (!scanner.beginsList(byte)) continue
          addRest(chunk.subarray(start, at + 1))
          list = []
          start = at + 1
          continue
        }
        const state = scanner.inside(byte)
        if (state === 'goes-on') continue
        addEntry(chunk.subarray(start, at))
        endEntry()
        start = at + 1
        if (state === 'entry-ends') continue
        // The list's place in the text is its number; the text goes on with the closing bracket.
        addRest(Buffer.from(String(lists.length)))
        lists.push(list)
        list = undefined
        start = at
      }
      const left = chunk.subarray(start)
      if (list === undefined) addRest(left)
      else addEntry(left)
    },
    end() {
      if (list !== undefined) throw new OutboundError('not-json')
      return restored(parse(textOf([rest.bytes()])), lists)
    },
  }
}

/** Finds in the bytes of JSON where the lists of certain names begin, and where their entries end. */
function createScanner() {
  let isInString = false
  let isEscaped = false
  /** Bytes of the current string that match each name; -1 for a name that the string does not have. */
  let matched = names.map(() => -1)
  /** The part of the text before a list that was read: its name, then a colon. */
  let key: 'none' | 'named' | 'colon' = 'none'
  /** The name that was read last. */
  let named: Buffer | undefined
  let depth = 0

  /** Reads a byte of a string. Returns whether the string ends with it. */
  const endsString = (byte: number): boolean => {
    if (isEscaped) isEscaped = false
    else if (byte === backslash) isEscaped = true
    else if (byte === quote) isInString = false
    return !isInString
  }
  const matchName = (byte: number): void => {
    for (const [index, name] of names.entries()) {
      const count = matched[index] ?? -1
      if (count >= 0) matched[index] = byte === name[count] ? count + 1 : -1
    }
  }
  return {
    /** The name of the list that is being read. */
    listName: () => named,
    /** Reads a byte outside of a list. Returns whether a list begins with it. */
    beginsList(byte: number): boolean {
      if (isInString) {
        if (!endsString(byte)) matchName(byte)
        else {
          named = names.find((name, index) => matched[index] === name.length)
          key = named === undefined ? 'none' : 'named'
        }
      } else if (byte === quote) {
        isInString = true
        matched = names.map(() => 0)
      } else if (byte === colon) key = key === 'named' ? 'colon' : 'none'
      else if (byte === open && key === 'colon') {
        key = 'none'
        return true
      } else if (byte > 0x20) key = 'none'
      return false
    },
    /** Reads a byte inside of a list: whether it ends an entry, or the list. */
    inside(byte: number): 'goes-on' | 'entry-ends' | 'list-ends' {
      if (isInString) endsString(byte)
      else if (byte === quote) isInString = true
      else if (byte === openBrace || byte === open) depth += 1
      else if (byte === closeBrace || (byte === close && depth > 0)) depth -= 1
      else if (byte === close) return 'list-ends'
      else if (byte === comma && depth === 0) return 'entry-ends'
      return 'goes-on'
    },
  }
}

/** The list of logs of a receipt, and a result that is a list, such as the logs of blocks. */
const [logsName, resultName] = [Buffer.from('logs'), Buffer.from('result')]
const names = [logsName, resultName]

function textOf(parts: readonly Uint8Array[]): string {
  return Buffer.concat(parts).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new OutboundError('not-json', error)
  }
}

/** The fields of a receipt's log that features use. The others repeat those of the receipt. */
function keepOfReceipt(log: unknown): { readonly value: unknown; readonly bytes: number } {
  if (!isRecord(log)) return { value: null, bytes: 0 }
  const { address, topics, data, logIndex } = log
  const value = { address, topics, data, logIndex }
  return { value, bytes: JSON.stringify(value).length }
}

/** The responses with their lists in place. */
function restored(response: unknown, lists: readonly unknown[][]): unknown {
  const listAt = ([place]: readonly unknown[]): unknown[] => lists[Number(place)] ?? []
  for (const entry of Array.isArray(response) ? response : [response]) {
    if (!isRecord(entry)) continue
    const { result } = entry
    if (Array.isArray(result)) Object.assign(entry, { result: listAt(result) })
    else if (isRecord(result) && Array.isArray(result.logs)) Object.assign(result, { logs: listAt(result.logs) })
  }
  return response
}
