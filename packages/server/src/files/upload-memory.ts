import { failPlatform } from '../platform/errors.ts'
import { createMemoryBudget, mayTake, memoryRefusal } from '../platform/share.ts'

/** One part in this many of the memory is for second buffers, which are optional: they take nothing from the first ones. */
const secondPart = 6
/** An upload that fills no buffer for this time is slow. */
const slowMs = 120_000

/**
 * The memory that one upload has taken. A slow sender keeps it for long, so an owner has a share: otherwise some hundred uploads of one tenant would
 * take the memory of the process.
 */
export interface UploadMemory {
  /** Throws if the share is used up. Before that it ends slow uploads of an owner with more, if that suffices. */
  take(bytes: number): void
  /** Returns whether there was memory for a second buffer. */
  takeSecond(bytes: number): boolean
  /** Notes that a buffer begins to fill. */
  fills(): void
  /** Notes that the buffer is full or the content at its end: until the next buffer begins to fill, the sender is not slow. */
  waits(): void
  /** Returns the content, which fails when the upload is ended for another. */
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
  /** Since when its buffer fills; undefined while it waits for the storage. */
  fillingSince: number | undefined
  end(): void
}

interface BudgetOptions {
  readonly bytesMax: number
  /** Milliseconds of a clock that never goes back. */
  readonly now?: (() => number) | undefined
}

/** The memory of all uploads of a process. Returns the memory of a new upload of an owner. */
export function createUploadBudget({
  bytesMax,
  now = () => performance.now(),
}: BudgetOptions): (owner: string) => UploadMemory {
  const secondMax = Math.floor(bytesMax / secondPart)
  const reserveSecond = createMemoryBudget(secondMax)
  const uploads = new Set<Upload>()
  const makeWay = (owner: string, more: number): void => {
    const wanted = { owner, more, max: bytesMax - secondMax, slowBefore: now() - slowMs }
    for (const slow of slowUploadsFor(wanted, [...uploads])) slow.end()
  }
  return (owner) =>
    uploadMemory({ owner, uploads, now, makeWay, reserveSecond: (bytes) => reserveSecond(owner, bytes) })
}

interface UploadOptions {
  readonly owner: string
  /** The uploads that have memory. */
  readonly uploads: Set<Upload>
  readonly now: () => number
  /** Throws if the owner may not have more. */
  readonly makeWay: (owner: string, more: number) => void
  readonly reserveSecond: (bytes: number) => () => void
}

function uploadMemory({ owner, uploads, now, makeWay, reserveSecond }: UploadOptions): UploadMemory {
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
        detail: 'The file arrived slowly while the memory for uploads was short. Nothing of it was stored.',
      })
      release()
      interrupt(refusal)
    },
  }
  return {
    take(bytes) {
      try {
        if (isEnded) throw refusal
        makeWay(owner, bytes)
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
        // A sender that is silent lets its content end only when its connection does.
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
 * Returns the slow uploads after whose end an owner may have more: none if it may now. They are of the owners that have most, and no less than it
 * would have itself, the slowest first. Throws if their end does not suffice.
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
