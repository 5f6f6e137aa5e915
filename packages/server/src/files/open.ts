import { mkdir, open, readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'
import type { Marks } from '../platform/witness/witness.ts'
import { openDiskBlobs, syncDirectory } from './disk.ts'
import { undefinedIfMissing } from './disk-writing.ts'
import type { BlobStore, S3Settings } from './port.ts'
import type { S3Options } from './s3.ts'

/** Opens the file storage that the operator configured; returns it and a function that closes it. */
export async function openFiles(
  storage: { readonly directory: string } | { readonly s3: S3Settings },
  own: { readonly clock: Clock; readonly random: Random; readonly log?: Log },
): Promise<{ readonly blobs: BlobStore; close(): void }> {
  if ('directory' in storage) {
    await haveDirectory(storage.directory, own.log)
    return { blobs: await openDiskBlobs({ ...storage, ...own }), close: () => undefined }
  }
  const blobs = await openS3Blobs(storage.s3, own)
  return { blobs, close: blobs.close }
}

/** Creates the directory if its parent exists, and logs that. A mistyped path would otherwise become an empty storage, without the files. */
async function haveDirectory(directory: string, log: Log | undefined): Promise<void> {
  try {
    await mkdir(directory, { mode: 0o700 })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST') return
    if (code !== 'ENOENT') throw error
    throw new Error(
      `${directory} cannot be created, since ${path.dirname(directory)} does not exist: create that directory, or correct FILES_DIR`,
    )
  }
  await syncDirectory(path.dirname(directory))
  log?.warn(
    { directory },
    'the directory of FILES_DIR did not exist and was created: correct it if files are stored elsewhere',
  )
}

/** The blob port on an S3-compatible storage. The client is imported only when used, because it takes about 10 MB of memory. */
export async function openS3Blobs(settings: S3Settings, own: S3Options): Promise<BlobStore & { close(): void }> {
  const { createS3Blobs } = await import('./s3.ts')
  return createS3Blobs(settings, own)
}

/** Opens the witness marks, stored next to the files under `witness/`: empty files in a directory, or S3 objects. */
export async function openMarks(
  storage: { readonly directory: string } | { readonly s3: S3Settings },
  own: { readonly random: Random },
): Promise<Marks & { close(): void }> {
  if ('directory' in storage) return { ...diskMarks(storage.directory), close: () => undefined }
  const { s3Marks } = await import('./s3-marks.ts')
  return s3Marks(storage.s3, own)
}

/** A mark is the name of an empty file, durable once its directory is synced. */
function diskMarks(directory: string): Marks {
  const placeOf = (deployment: string): string => path.join(directory, 'witness', deployment)
  return {
    async list(deployment) {
      return (await undefinedIfMissing(readdir(placeOf(deployment)))) ?? []
    },
    async create(deployment, name) {
      const storage = placeOf(deployment)
      if ((await mkdir(storage, { recursive: true, mode: 0o700 })) !== undefined)
        for (const parent of [directory, path.dirname(storage)]) await syncDirectory(parent)
      try {
        await (await open(path.join(storage, name), 'wx', 0o600)).close()
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return 'taken'
        throw error
      }
      await syncDirectory(storage)
      return 'created'
    },
    async remove(deployment, names) {
      for (const name of names) await rm(path.join(placeOf(deployment), name), { force: true })
    },
  }
}
