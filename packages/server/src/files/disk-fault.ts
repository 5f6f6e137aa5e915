import { fail } from './errors.ts'

/** What the disk refuses is the caller's problem in words that name no path; a stream that fails is not the disk's. */
export async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw fail('file-storage-unavailable', {}, cause)
  }
}

/** Answers undefined where the file or directory is not there. */
export async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
