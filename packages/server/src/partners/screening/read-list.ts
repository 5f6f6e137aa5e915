import { plainList } from './plain-list.ts'
import { type ListReader, ListRefused, type ReadList } from './sanctions-list.ts'
import { sdnList } from './sdn-list.ts'
import { XmlRefused } from './xml.ts'

const bytesMax = 512 * 1_048_576

/**
 * Reads a list whole or not at all, in pieces, so that its size is no matter: the official `sdn_advanced.xml`, or a plain list of one
 * address a line. Throws `ListRefused` for a list that is cut short, not UTF-8, larger than 512 MiB, or holds nothing.
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
    if (list === undefined || list.addresses.size === 0) throw new ListRefused('empty', 'the list holds no EVM address')
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

/** The reader for what the text begins with; none yet while there is only white space. */
function readerFor(text: string): ListReader | undefined {
  const start = text.trimStart()
  if (start === '') return undefined
  return start.startsWith('<') ? sdnList() : plainList()
}
