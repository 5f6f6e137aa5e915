import { addressBlock } from '@purser/protocol'
import { failPlatform, type Problem } from './errors.ts'

/** The use of a limited resource: by the owner, by all owners, and the maximum. */
export interface ShareUsage {
  readonly own: number
  readonly taken: number
  readonly max: number
  /** Number of requested units; default 1. */
  readonly more?: number
}

/**
 * Returns whether an owner may take `more` units: each owner may have half of those that the others leave. The first gets half, the next a
 * quarter, and an owner without any gets one while any is free. So no owner can leave another without any.
 */
export function mayTake({ own, taken, max, more = 1 }: ShareUsage): boolean {
  if (taken + more > max) return false
  return own === 0 || own + more < (max - (taken - own)) / 2 + 1
}

/**
 * Like `mayTake`, for work in the test environment, of which the owner has `ownTest` units: it gets at most half of the owner's share, so that test keys
 * leave the other half to live ones.
 */
export function mayTakeForTest({
  own,
  ownTest,
  taken,
  max,
}: Omit<ShareUsage, 'more'> & { readonly ownTest: number }): boolean {
  return mayTake({ own, taken, max }) && (ownTest === 0 || ownTest + 1 < (max - (taken - own)) / 4 + 1)
}

/** The part of a limit that `mayTakeShared` leaves to owners without a unit: an eighth. */
const firstPart = 8

/** Like `mayTake`, but several owners that together take all that they may leave an eighth of the units to owners without one. */
export function mayTakeShared({ own, taken, max }: Omit<ShareUsage, 'more'>): boolean {
  return mayTake({ own, taken, max: own === 0 ? max : max - Math.floor(max / firstPart) })
}

/** The refusal when there is no memory for a body: 503 if the budget is used up, 429 if only the owner's share is. */
export function memoryRefusal({ taken, max, more }: { readonly [name in 'taken' | 'max' | 'more']: number }): Problem {
  const code = taken + more > max ? 'service-unavailable' : 'rate-limit-exceeded'
  return failPlatform(code, { retryAfterSeconds: 1 })
}

/**
 * Returns the cap for each owner at which the largest owner uses no more than all owners together leave free. Owners below the cap are not affected.
 * The result does not depend on the order of the owners.
 */
export function levelOf(totals: readonly number[], max: number): number {
  let kept = totals.reduce((sum, total) => sum + total, 0)
  let lowered = 0
  for (const total of totals.toSorted((one, other) => other - one)) {
    const level = (max - kept) / (lowered + 1)
    if (total <= level) return level
    kept -= total
    lowered += 1
  }
  return (max - kept) / (lowered + 1)
}

/** Reserves memory; returns the function that releases it. Throws 429 for an owner above its share, 503 if the budget is used up. */
export type ReserveMemory = (owner: string, bytes: number) => () => void

/** The part of a budget that only owners with little take from: an eighth. Little is a thousandth of the budget. */
const smallPart = 8
const smallOwner = 1_024

/**
 * A limit of memory for bodies in flight. An owner (an organisation, or an address without one) may have half of what the others leave, so
 * that the bodies of one never crowd out those of another. An eighth is for owners with small bodies alone: several owners that together
 * take all that they may leave the others their ordinary requests. `ownMax` limits each owner further.
 */
export function createMemoryBudget(bytesMax: number, ownMax = Number.POSITIVE_INFINITY): ReserveMemory {
  const owners = new Map<string, number>()
  const shared = bytesMax - Math.floor(bytesMax / smallPart)
  const small = Math.floor(bytesMax / smallOwner)
  let taken = 0
  return (owner, bytes) => {
    const own = owners.get(owner) ?? 0
    const max = own + bytes <= small ? bytesMax : shared
    if (own + bytes > ownMax) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: 1 })
    if (!mayTake({ own, taken, max, more: bytes })) throw memoryRefusal({ taken, max, more: bytes })
    owners.set(owner, own + bytes)
    taken += bytes
    return () => {
      taken -= bytes
      const left = (owners.get(owner) ?? bytes) - bytes
      if (left <= 0) owners.delete(owner)
      else owners.set(owner, left)
    }
  }
}

/** The memory for bodies of requests in flight. */
export interface BodyBudgets {
  /** For callers with a credential; the owner is an organisation. */
  readonly ofOperations: ReserveMemory
  /** For pages that need no credential, such as sign-in; the owner is the caller's network address. */
  readonly ofPages: ReserveMemory
}

/**
 * Divides the memory for bodies: callers without a credential have a sixteenth of their own, so that no number of addresses keeps a caller
 * with a credential out. One address has at most a sixteenth of that.
 *
 * @example createBodyBudgets(67_108_864) // 60 MiB for operations; 4 MiB for pages, at most 256 KiB of them for one address
 */
export function createBodyBudgets(bytesMax: number): BodyBudgets {
  const pagesMax = Math.floor(bytesMax / 16)
  const pages = createMemoryBudget(pagesMax, Math.floor(pagesMax / 16))
  return {
    ofOperations: createMemoryBudget(bytesMax - pagesMax),
    ofPages: (address, bytes) => pages(addressBlock(address), bytes),
  }
}
