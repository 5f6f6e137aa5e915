import { randomUUID } from 'node:crypto'
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { CannotDo } from './command.ts'
import { isRecord, readJson } from './json.ts'

/** A key, and the one service that it is for. */
export interface Credentials {
  readonly baseUrl: string
  readonly apiKey: string
}

const fileBytesMax = 8_192
const othersBits = 0o077

/** Where `purser login` keeps the key. */
export function credentialsFile(settingsDirectory: string): string {
  return path.join(settingsDirectory, 'credentials.json')
}

/**
 * What `purser login` kept; undefined where nobody logged in. Throws a `CannotDo` for a file that others can read: whoever made it so
 * must know that the key may be known.
 */
export async function readCredentials(settingsDirectory: string): Promise<Credentials | undefined> {
  const file = credentialsFile(settingsDirectory)
  const text = await readOwn(file)
  if (text === undefined) return undefined
  const read = readJson(text)
  if (isRecord(read) && typeof read.baseUrl === 'string' && typeof read.apiKey === 'string')
    return { baseUrl: read.baseUrl, apiKey: read.apiKey }
  throw new CannotDo(`${file} is not what purser login writes. Log in again.`)
}

async function readOwn(file: string): Promise<Uint8Array | undefined> {
  const handle = await open(file, 'r').catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw new CannotDo(`${file} cannot be read (${codeOf(error)}).`, { cause: error })
  })
  if (handle === undefined) return undefined
  try {
    const { mode } = await handle.stat()
    if (process.platform !== 'win32' && (mode & othersBits) !== 0)
      throw new CannotDo(`${file} can be read by others. Make a new key, and log in again after: chmod 600 ${file}`)
    const bytes = Buffer.alloc(fileBytesMax)
    const { bytesRead } = await handle.read(bytes, 0, fileBytesMax, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** Keeps them where only this user reads: the file is whole and mode 0600 from its first instant, its directory 0700. */
export async function writeCredentials(settingsDirectory: string, credentials: Credentials): Promise<string> {
  const file = credentialsFile(settingsDirectory)
  const fresh = `${file}.${randomUUID()}`
  try {
    await mkdir(settingsDirectory, { recursive: true, mode: 0o700 })
    await chmod(settingsDirectory, 0o700)
    const handle = await open(fresh, 'wx', 0o600)
    await handle.writeFile(`${JSON.stringify(credentials, null, 2)}\n`).finally(() => handle.close())
    await rename(fresh, file)
  } catch (error) {
    await rm(fresh, { force: true }).catch(() => undefined)
    throw new CannotDo(`${file} cannot be written (${codeOf(error)}).`, { cause: error })
  }
  return file
}

/** Forgets the key; false where none was kept. */
export async function deleteCredentials(settingsDirectory: string): Promise<boolean> {
  const file = credentialsFile(settingsDirectory)
  try {
    await rm(file)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw new CannotDo(`${file} cannot be deleted (${codeOf(error)}).`, { cause: error })
  }
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR'
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}
