import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { ContentDigest } from '@purser/sdk/seal'
import { CommandError } from './command.ts'

/** The bytes of a small file. Throws a `CommandError` for one that cannot be read or has more than `bytesMax`. */
export async function readBytes(path: string, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunksOf(path)) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new CommandError(`${path} has more than ${bytesMax} bytes, the most that is read.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Size and SHA-256 of a file of any size, read as a stream. Throws a `CommandError` for one that cannot be read. */
export async function digestOf(path: string): Promise<ContentDigest> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of chunksOf(path)) {
    size += chunk.length
    hash.update(chunk)
  }
  return { size, sha256: hash.digest('hex') }
}

async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of createReadStream(path)) if (chunk instanceof Uint8Array) yield chunk
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new CommandError(`${path} cannot be read (${reason}).`, { cause: error })
  }
}
