import { addEntry, type ListReader, ListRefused, type ReadList } from './sanctions-list.ts'
import { createXmlScanner, type XmlHandler, XmlRefused } from './xml.ts'

const bytesMax = 512 * 1_048_576

/**
 * Reads a complete list as a stream: the official `sdn_advanced.xml`, or a plain list with one address per line. Throws `ListRefused` for a list
 * that is truncated, not UTF-8, larger than 512 MiB, or empty.
 */
export async function readList(chunks: AsyncIterable<Uint8Array>): Promise<ReadList> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let reader: ListReader | undefined
  let bytes = 0
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length
      if (bytes > bytesMax) throw new ListRefused('too-large', 'the list is larger than 512 MiB')
      const text = decode(() => decoder.decode(chunk, { stream: true }))
      reader ??= readerFor(text)
      reader?.write(text)
    }
    reader?.write(decode(() => decoder.decode()))
    const list = reader?.end()
    if (list === undefined || list.addresses.size === 0) throw new ListRefused('empty', 'the list has no EVM address')
    return list
  } catch (error) {
    if (error instanceof XmlRefused)
      throw new ListRefused('malformed', `the list is malformed: ${error.message}`, error)
    throw error
  }
}

function decode(read: () => string): string {
  try {
    return read()
  } catch (error) {
    throw new ListRefused('malformed', 'the list is not UTF-8', error)
  }
}

/** The reader for the list's format; undefined while there is only white space. */
function readerFor(text: string): ListReader | undefined {
  const start = text.trimStart()
  if (start === '') return undefined
  return start.startsWith('<') ? sdnList() : plainList()
}

const lineCharactersMax = 512
const dated = /^#\s*list-date:\s*(\d{4}-\d\d-\d\d)\s*$/

/**
 * Parses a list with one address per line. Ignores addresses of other chains and lines that begin with `#`, except `# list-date: YYYY-MM-DD`, which
 * gives the list's date.
 */
function plainList(): ListReader {
  const addresses = new Set<string>()
  let listDate: string | undefined
  let malformed = 0
  let rest = ''
  const take = (line: string): void => {
    const entry = line.trim()
    if (entry.length > lineCharactersMax) throw new ListRefused('malformed', 'a line of the list is too long')
    if (entry.startsWith('#')) listDate = dated.exec(entry)?.[1] ?? listDate
    else if (!addEntry(addresses, entry)) malformed += 1
  }
  return {
    write(chunk) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) take(line)
      if (rest.length > lineCharactersMax) throw new ListRefused('malformed', 'a line of the list is too long')
    },
    end() {
      take(rest)
      return { format: 'plain', listDate, addresses, malformed }
    },
  }
}

const featureTypeBegin = 'Digital Currency Address'
const textCharactersMax = 4_096

/**
 * Parses OFAC's `sdn_advanced.xml`. Feature types whose text begins with "Digital Currency Address" mark addresses; the `VersionDetail` of every
 * feature of such a type is an address. All assets are read, since a key has one address on all EVM chains.
 */
function sdnList(): ListReader {
  const addresses = new Set<string>()
  const addressTypes = new Set<string>()
  const date: Record<string, string> = {}
  const path: string[] = []
  let malformed = 0
  /** The element being read, with the id of a feature type. */
  let reading: { readonly name: string; readonly id: string; text: string } | undefined
  let featureDepth: number | undefined

  const wanted = (name: string): boolean =>
    name === 'FeatureType' ||
    (name === 'VersionDetail' && featureDepth !== undefined) ||
    (path.at(-2) === 'DateOfIssue' && path.length === 3)
  const done = ({ name, id, text }: NonNullable<typeof reading>): void => {
    const content = text.trim()
    if (name === 'FeatureType') {
      if (content.startsWith(featureTypeBegin)) addressTypes.add(id)
    } else if (name === 'VersionDetail') {
      if (!addEntry(addresses, content)) malformed += 1
    } else date[name] = content
  }
  const handler: XmlHandler = {
    open(name, attributes, depth) {
      if (depth === 1 && name !== 'Sanctions') throw new XmlRefused('the root element is not that of sdn_advanced.xml')
      path.push(name)
      if (name === 'Feature' && featureDepth === undefined && addressTypes.has(attributes.get('FeatureTypeID') ?? ''))
        featureDepth = depth
      if (wanted(name)) reading = { name, id: attributes.get('ID') ?? '', text: '' }
    },
    text(piece) {
      if (reading === undefined) return
      reading.text += piece
      if (reading.text.length > textCharactersMax) throw new XmlRefused('a text of the list is too long')
    },
    close(name, depth) {
      path.pop()
      if (reading?.name === name) {
        done(reading)
        reading = undefined
      }
      if (depth === featureDepth) featureDepth = undefined
    },
  }
  const scanner = createXmlScanner(handler)
  return {
    write: (chunk) => scanner.write(chunk),
    end() {
      scanner.end()
      return { format: 'sdn-advanced-xml', listDate: dayOf(date), addresses, malformed }
    },
  }
}

function dayOf({ Year: year = '', Month: month = '', Day: day = '' }: Readonly<Record<string, string>>): string {
  if (!/^\d{4}$/.test(year) || !/^\d{1,2}$/.test(month) || !/^\d{1,2}$/.test(day))
    throw new XmlRefused('the list has no issue date')
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
}
