import { mkdir, open, readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import type { Random } from '../platform/random.ts'
import type { Marks } from '../platform/witness/witness.ts'
import { syncDirectory } from './disk.ts'
import { ifThere } from './disk-fault.ts'
import type { S3Settings } from './port.ts'

/** Opens the witness marks, stored next to the files under `witness/`: empty files in a directory, or S3 objects. */
export async function openMarks(
  place: { readonly directory: string } | { readonly s3: S3Settings },
  own: { readonly random: Random },
): Promise<Marks & { close(): void }> {
  if ('directory' in place) return { ...diskMarks(place.directory), close: () => undefined }
  const { s3Marks } = await import('./s3-marks.ts')
  return s3Marks(place.s3, own)
}

/** A mark is the name of an empty file, durable once its directory is synced. */
function diskMarks(directory: string): Marks {
  const placeOf = (deployment: string): string => path.join(directory, 'witness', deployment)
  return {
    async list(deployment) {
      return (await ifThere(readdir(placeOf(deployment)))) ?? []
    },
    async create(deployment, name) {
      const place = placeOf(deployment)
      if ((await mkdir(place, { recursive: true, mode: 0o700 })) !== undefined)
        for (const parent of [directory, path.dirname(place)]) await syncDirectory(parent)
      try {
        await (await open(path.join(place, name), 'wx', 0o600)).close()
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return 'taken'
        throw error
      }
      await syncDirectory(place)
      return 'created'
    },
    async remove(deployment, names) {
      for (const name of names) await rm(path.join(placeOf(deployment), name), { force: true })
    },
  }
}
