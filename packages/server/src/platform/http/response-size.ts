import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { addressBlock } from '@purser/protocol'
import { Problem } from '../errors.ts'
import { createMemoryBudget, type ReserveMemory } from '../share.ts'
import { problemResponse } from './call.ts'
import type { RawResponse } from './success-response.ts'

/** Bytes that a caller is sent for each token: about one millisecond of CPU. */
const bytesPerToken = 65_536
const fileBytesPerToken = 1_048_576
/** Most bytes of a response whose memory is not counted: the buffers of its connection take it. */
const uncountedBytesMax = 8_192
/** Bytes of a JSON stream that wait in memory while its caller does not read: up to three pieces of 500 items. */
const streamBytesMax = 786_432

/** Reports of changes for which a full memory has no place have this part of it in addition, together. */
const extraPart = 8
/** However much others have, an owner has this part of the memory for reports of what it changed before its oldest responses are cut. */
const keptPart = 64

interface SentResponse {
  readonly ctx: Parameters<typeof problemResponse>[0]
  /** Shares the memory with others: the caller's organisation, or the address of a caller without one. */
  readonly shareOwner: string
  readonly method: string
  /** As of the operation. */
  readonly changesNothing?: true | undefined
  readonly response: RawResponse
  /** Takes tokens of the limits that the request counted in. */
  readonly owe: (cost: number) => void
  /** As `owe`, before the work: throws 429 if the caller may not make so large a request now. */
  readonly charge?: (cost: number) => void
  readonly sending: Sending
}

type Sending = Pick<ServerResponse, 'destroyed'> & {
  once(event: 'close', listener: () => void): unknown
  destroy(): unknown
}

/** Counts a response, and returns it or the refusal that is sent in its place. */
export type LimitResponse = (answered: SentResponse) => RawResponse

export interface ResponseLimits {
  readonly ofOperations: LimitResponse
  /** For pages that need no credential. Their memory is their own, so that no number of addresses takes that of callers with a credential. */
  readonly ofPages: LimitResponse
  /** For files in memory that all responses share: they cost by their bytes, and take no memory of their own. */
  readonly ofStaticFiles: LimitResponse
}

/** Returns the limits of responses: pages have a quarter of the memory. */
export function createResponseLimits(bytesMax: number): ResponseLimits {
  const pagesMax = Math.floor(bytesMax / 4)
  const ofPages = createLimit(createMemoryBudget(pagesMax), pagesMax)
  const ofOperations = createLimit(createMemoryBudget(bytesMax - pagesMax), bytesMax - pagesMax)
  return {
    ofOperations,
    ofPages: (page) => ofPages({ ...page, shareOwner: addressBlock(page.shareOwner) }),
    ofStaticFiles({ response, owe }) {
      owe(Math.floor(bytesOf(response) / bytesPerToken))
      return response
    },
  }
}

/**
 * Returns the function that limits responses.
 *
 * - Rate: each 64 KiB that are read for a response, and each MiB of a file, cost a token. Tokens beyond the first delay the caller's next requests. A streamed response
 *   pays before its first chunk.
 * - Memory: the memory of unread responses is limited, and an organisation may use half of what the others leave. Above its share a read-only
 *   request is refused: 429, or 503 if the memory is full. A response larger than half of the limit counts as half, so that it can be sent at all.
 * - A response that reports a change is always sent. Above the share of its owner, the oldest unread responses of the owner are closed for it.
 *   If others have filled the memory, it uses additional memory.
 */
function createLimit(reserve: ReserveMemory, bytesMax: number): LimitResponse {
  const unread = createUnread(reserve, bytesMax)
  return ({ ctx, shareOwner, method, changesNothing, response, owe, charge = owe, sending }) => {
    const bytes = bytesOf(response)
    const { fileBytes, bytesRead = bytes } = response
    const cost = Math.ceil(fileBytes === undefined ? bytesRead / bytesPerToken : fileBytes / fileBytesPerToken) - 1
    const isChargedFirst = response.body instanceof Readable && method === 'GET'
    if (cost > 0 && !isChargedFirst) owe(cost)
    if (sending.destroyed) return response
    const counted = { owner: shareOwner, bytes: Math.min(bytes, bytesMax / 2), sending }
    try {
      if (bytes > uncountedBytesMax) {
        if (method === 'GET' || changesNothing === true) unread.add(counted)
        else unread.addReport(counted)
      }
      // Also for a file, whose stream has a limit of memory of its own.
      if (cost > 0 && isChargedFirst) charge(cost)
      return response
    } catch (error) {
      if (response.body instanceof Readable) response.body.destroy()
      return problemResponse(ctx, error)
    }
  }
}

interface Counted {
  readonly owner: string
  readonly bytes: number
  readonly sending: Sending
}

/** Counts the memory of responses until their connections have taken them. */
interface Unread {
  /** Throws if the owner or all together have too much. */
  add(counted: Counted): void
  /** Counts the report of a change, and cuts other responses for it if there is too much. Never throws. */
  addReport(counted: Counted): void
}

function createUnread(reserve: ReserveMemory, bytesMax: number): Unread {
  const [keptBytes, extraMax] = [bytesMax / keptPart, bytesMax / extraPart]
  /** Those that have memory of the budget, and the reports that have some in addition. */
  const [inBudget, extra] = [createCounts(), createCounts()]
  const add = (counted: Counted): void => inBudget.add(counted, reserve(counted.owner, counted.bytes))
  const addExtra = (counted: Counted): void => {
    const { owner, bytes } = counted
    while (extra.bytesOf(owner) + bytes > keptBytes && extra.cutOldest(owner));
    while (extra.total() + bytes > extraMax && extra.cutOldest(extra.largest()));
    extra.add(counted)
  }
  return {
    add,
    addReport(counted) {
      const { owner, bytes } = counted
      do {
        try {
          return add(counted)
        } catch (error) {
          const isOwn = error instanceof Problem && error.code === 'rate-limit-exceeded'
          // Alone, an owner may have half.
          const allowed = isOwn ? keptBytes : bytesMax / 2
          if (inBudget.bytesOf(owner) + bytes <= allowed) break
        }
      } while (inBudget.cutOldest(owner))
      addExtra(counted)
    },
  }
}

/** Unread responses of each owner, oldest first. */
function createCounts() {
  const owners = new Map<string, Map<Counted, () => void>>()
  const bytesOf = (owner: string): number =>
    [...(owners.get(owner)?.keys() ?? [])].reduce((sum, { bytes }) => sum + bytes, 0)
  return {
    bytesOf,
    total: (): number => [...owners.keys()].reduce((sum, owner) => sum + bytesOf(owner), 0),
    /** The owner with the most bytes. */
    largest: (): string | undefined =>
      [...owners.keys()].reduce<string | undefined>(
        (most, owner) => (most === undefined || bytesOf(owner) > bytesOf(most) ? owner : most),
        undefined,
      ),
    /** Counts a response until its connection closes; then calls `release`. */
    add(counted: Counted, release: () => void = () => undefined): void {
      const { owner, sending } = counted
      const own = owners.get(owner) ?? new Map<Counted, () => void>()
      owners.set(owner, own)
      const end = (): void => {
        if (!own.delete(counted)) return
        if (own.size === 0) owners.delete(owner)
        release()
      }
      own.set(counted, end)
      sending.once('close', end)
    },
    /** Ends the oldest response of an owner; returns whether it has one. */
    cutOldest(owner: string | undefined): boolean {
      const [oldest] = owners.get(owner ?? '') ?? []
      if (oldest === undefined) return false
      const [{ sending }, end] = oldest
      end()
      sending.destroy()
      return true
    },
  }
}

/** Returns the bytes of a body in memory: of a JSON stream its pieces that wait, and none of a stream whose memory has limits of its own. */
function bytesOf({ body, bytesRead }: RawResponse): number {
  if (body instanceof Readable) return Math.min(bytesRead ?? 0, streamBytesMax)
  if (typeof body === 'string') return Buffer.byteLength(body)
  return body instanceof Uint8Array ? body.byteLength : 0
}
