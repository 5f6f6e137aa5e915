import { type Content, documentContent, type SealedItem } from '@purser/sdk/seal'
import { digestOf, readBytes } from '../input-files.ts'
import { isRecord, readJson } from '../json.ts'

const documentBytesMax = 67_108_864

/**
 * Reads the content of an item from a file. A vault file is hashed byte for byte, at any size; a document is parsed, so
 * its JSON formatting does not matter.
 */
export async function contentOf({ kind }: SealedItem, path: string): Promise<Content> {
  if (kind === 'file') return digestOf(path)
  const bytes = await readBytes(path, documentBytesMax)
  const data = readJson(bytes)
  return isRecord(data) ? (canonical(data) ?? bytes) : bytes
}

/** `undefined` for data that no document can have, such as a number out of range. */
function canonical(data: Record<string, unknown>): Uint8Array | undefined {
  try {
    return documentContent(data)
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}
