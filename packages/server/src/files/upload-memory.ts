import { failPlatform } from '../platform/errors.ts'
import { createMemoryBudget, mayTake, memoryRefusal } from '../platform/share.ts'

/** A sixth of the memory is for second buffers, which are optional and never reduce the memory for first buffers. */
const secondPart = 6
/** An upload that fills no buffer for this time is slow. */
const slowMs = 120_000

/**
 * The memory of one upload. A slow sender occupies it for long, so each owner has a share: otherwise some hundred uploads of one tenant would exhaust
 * the memory of the process.
 */
export interface UploadMemory {
  /** Reserves memory. If the share is used up, ends slow uploads of owners that use more; throws if that does not suffice. */
  take(bytes: number): void
  /** Returns whether there was memory for a second buffer. */
  takeSecond(bytes: number): boolean
  /** Records that a buffer has begun to fill. */
  fills(): void
  /** Records that the buffer is full or the content has ended. Until the next buffer begins to fill, the sender does not count as slow. */
  waits(): void
  /** Returns the content as a stream that fails when this upload is ended in favor of another. */
  endable(content: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>
  /** Releases all of it. */
  release(): void
  /** Returns the problem for which the upload was refused or ended, if it was. */
  refusal(): unknown
}

/** An upload and its memory, without its second buffer. */
interface Upload {
  readonly owner: string
  bytes: number
  /** The time at which its buffer began to fill, in milliseconds; undefined while it waits for the storage. */
  fillingSince: number | undefined
  end(): void
}

interface BudgetOptions {
  readonly bytesMax: number
  /** Milliseconds of a monotonic clock. */
  readonly now?: (() => number) | undefined
}

/** Creates the budget for the uploads of a process: a function that returns the memory of a new upload of an owner. */
export function createUploadBudget({
  bytesMax,
  now = () => performance.now(),
}: BudgetOptions): (owner: string) => UploadMemory {
  const secondMax = Math.floor(bytesMax / secondPart)
  const reserveSecond = createMemoryBudget(secondMax)
  const uploads = new Set<Upload>()
  const freeMemoryFor = (owner: string, more: number): void => {
    const wanted = { owner, more, max: bytesMax - secondMax, slowBefore: now() - slowMs }
    for (const slow of slowUploadsFor(wanted, [...uploads])) slow.end()
  }
  return (owner) =>
    uploadMemory({ owner, uploads, now, freeMemoryFor, reserveSecond: (bytes) => reserveSecond(owner, bytes) })
}

interface UploadOptions {
  readonly owner: string
  /** The uploads that have memory. */
  readonly uploads: Set<Upload>
  readonly now: () => number
  /** Throws if the owner may not have more. */
  readonly freeMemoryFor: (owner: string, more: number) => void
  readonly reserveSecond: (bytes: number) => () => void
}

function uploadMemory({ owner, uploads, now, freeMemoryFor, reserveSecond }: UploadOptions): UploadMemory {
  let refusal: unknown
  let isEnded = false
  let interrupt = (_fault: unknown): void => undefined
  let releaseSecond = (): void => undefined
  const release = (): void => {
    uploads.delete(upload)
    upload.bytes = 0
    releaseSecond()
    releaseSecond = () => undefined
  }
  const upload: Upload = {
    owner,
    bytes: 0,
    fillingSince: undefined,
    end() {
      isEnded = true
      refusal = failPlatform('request-timeout', {
        detail: 'The upload was too slow while memory for uploads was short. Nothing was stored.',
      })
      release()
      interrupt(refusal)
    },
  }
  return {
    take(bytes) {
      try {
        if (isEnded) throw refusal
        freeMemoryFor(owner, bytes)
      } catch (cause) {
        refusal = cause
        throw cause
      }
      upload.bytes += bytes
      uploads.add(upload)
    },
    takeSecond(bytes) {
      try {
        releaseSecond = reserveSecond(bytes)
        return true
      } catch {
        return false
      }
    },
    fills() {
      upload.fillingSince = now()
    },
    waits() {
      upload.fillingSince = undefined
    },
    async *endable(content) {
      const chunks = content[Symbol.asyncIterator]()
      try {
        while (!isEnded) {
          // One promise for each chunk: a race with one promise for all of them would keep every chunk.
          const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<Uint8Array>>()
          interrupt = reject
          chunks.next().then(resolve, reject)
          const { done, value } = await promise
          if (done === true) return
          yield value
        }
        throw refusal
      } finally {
        const returned = chunks.return?.()
        // If the sender is silent, its content ends only when the connection is closed, so this is not awaited.
        if (isEnded) returned?.catch(() => undefined)
        else await returned
      }
    },
    release,
    refusal: () => refusal,
  }
}

interface Wanted {
  readonly owner: string
  readonly more: number
  readonly max: number
  /** An upload whose buffer has been filling since before this time is slow. */
  readonly slowBefore: number
}

/**
 * Returns the slow uploads to end so that an owner may reserve more memory; empty if it may already. Only owners that use at least as much as this
 * one would are chosen, the largest first, and of each its slowest upload first. Throws if ending them does not suffice.
 */
function slowUploadsFor({ owner, more, max, slowBefore }: Wanted, uploads: readonly Upload[]): readonly Upload[] {
  const isSlow = ({ fillingSince = Number.POSITIVE_INFINITY }: Upload) => fillingSince <= slowBefore
  const own = bytesOf(uploads.filter((upload) => upload.owner === owner))
  let taken = bytesOf(uploads)
  if (mayTake({ own, taken, max, more })) return []
  const refusal = memoryRefusal({ taken, max, more })
  const others = [...Map.groupBy(uploads, (upload) => upload.owner)]
    .filter(([name]) => name !== owner)
    .map(([, theirs]) => ({ bytes: bytesOf(theirs), slow: theirs.filter(isSlow).sort(slowestLast) }))
  const ending: Upload[] = []
  while (!mayTake({ own, taken, max, more })) {
    const [most] = others
      .filter(({ bytes, slow }) => slow.length > 0 && bytes >= own + more)
      .sort((one, other) => other.bytes - one.bytes)
    const slowest = most?.slow.pop()
    if (most === undefined || slowest === undefined) throw refusal
    most.bytes -= slowest.bytes
    taken -= slowest.bytes
    ending.push(slowest)
  }
  return ending
}

function slowestLast({ fillingSince: one = 0 }: Upload, { fillingSince: other = 0 }: Upload): number {
  return other - one
}

function bytesOf(uploads: readonly Upload[]): number {
  return uploads.reduce((sum, { bytes }) => sum + bytes, 0)
}
