import { randomUUID } from 'node:crypto'
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { CommandError } from './command.ts'
import { isRecord, readJson } from './json.ts'

/** An API key and the service that it is for. */
export interface Credentials {
  readonly baseUrl: string
  readonly apiKey: string
}

const fileBytesMax = 8_192
const othersBits = 0o077

/** Returns the path of the file in which `purser login` stores the key. */
export function credentialsFile(settingsDirectory: string): string {
  return path.join(settingsDirectory, 'credentials.json')
}

/**
 * Returns what `purser login` stored, or undefined. Throws a `CommandError` for a file that other users can read, because the key
 * may have leaked.
 */
export async function readCredentials(settingsDirectory: string): Promise<Credentials | undefined> {
  const file = credentialsFile(settingsDirectory)
  const text = await readOwn(file)
  if (text === undefined) return undefined
  const read = readJson(text)
  if (isRecord(read) && typeof read.baseUrl === 'string' && typeof read.apiKey === 'string')
    return { baseUrl: read.baseUrl, apiKey: read.apiKey }
  throw new CommandError(`${file} is not a credentials file of purser. Log in again.`)
}

async function readOwn(file: string): Promise<Uint8Array | undefined> {
  const handle = await open(file, 'r').catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw new CommandError(`${file} cannot be read (${codeOf(error)}).`, { cause: error })
  })
  if (handle === undefined) return undefined
  try {
    const { mode } = await handle.stat()
    if (process.platform !== 'win32' && (mode & othersBits) !== 0)
      throw new CommandError(
        `${file} is readable by other users. Make a new key, run chmod 600 on the file, and log in again: ${file}`,
      )
    const bytes = Buffer.alloc(fileBytesMax)
    const { bytesRead } = await handle.read(bytes, 0, fileBytesMax, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** Writes the file atomically with mode 0600, in a directory of mode 0700. Returns its path. */
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
    throw new CommandError(`${file} cannot be written (${codeOf(error)}).`, { cause: error })
  }
  return file
}

/** Deletes the stored key. Returns false if there was none. */
export async function deleteCredentials(settingsDirectory: string): Promise<boolean> {
  const file = credentialsFile(settingsDirectory)
  try {
    await rm(file)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw new CommandError(`${file} cannot be deleted (${codeOf(error)}).`, { cause: error })
  }
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR'
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}
