import { fail } from './errors.ts'

/** Turns disk errors into the problem `file-storage-unavailable`, which contains no path. Do not use it for errors of the caller's stream. */
export async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw fail('file-storage-unavailable', {}, cause)
  }
}

/** Returns undefined when the file or directory does not exist. */
export async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
