import { failPlatform } from '../errors.ts'
import { mayTake } from '../share.ts'

/** Reserves memory for a request's body; returns what releases it. Throws 429 for an owner above its share, 503 if the budget is used up. */
export type ReserveBody = (owner: string, bytes: number) => () => void

/**
 * The memory of one server for bodies in flight. An owner (an organization, or an address without one) may have half of what the others
 * leave, so that the bodies of one never crowd out those of another.
 */
export function createBodyBudget(bytesMax: number): ReserveBody {
  const owners = new Map<string, number>()
  let taken = 0
  return (owner, bytes) => {
    const own = owners.get(owner) ?? 0
    if (!mayTake({ own, taken, max: bytesMax, more: bytes }))
      throw failPlatform(taken + bytes > bytesMax ? 'service-unavailable' : 'rate-limit-exceeded', {
        retryAfterSeconds: 1,
      })
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

/** Reserves memory for the body of a request until its response has ended. Throws as `reserve` does. */
export function reserveBody(
  reserve: ReserveBody,
  body: {
    readonly request: { readonly headers: Readonly<Record<string, unknown>> }
    readonly reply: { readonly raw: { once(event: 'close', listener: () => void): unknown } }
    readonly bytesMax: number
    readonly owner: string
  },
): void {
  const bytes = bodyBytesOf(body.request.headers, body.bytesMax)
  if (bytes > 0) body.reply.raw.once('close', reserve(body.owner, bytes))
}

/** Returns the bytes that a request's body may take: its announced length, or `bytesMax` if it announces none. */
function bodyBytesOf(headers: Readonly<Record<string, unknown>>, bytesMax: number): number {
  if (headers['transfer-encoding'] !== undefined) return bytesMax
  const length = Number(headers['content-length'] ?? 0)
  return Number.isFinite(length) ? Math.min(Math.max(0, length), bytesMax) : bytesMax
}
