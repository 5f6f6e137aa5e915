import { plainList } from './plain-list.ts'
import { type ListReader, ListRefused, type ReadList } from './sanctions-list.ts'
import { sdnList } from './sdn-list.ts'
import { XmlRefused } from './xml.ts'

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
