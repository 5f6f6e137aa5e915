import { hash } from 'node:crypto'
import { decodeMppJson, type MppChallenge } from '@purser/protocol'

/** What a challenge is good for: one resource, or everything on one host. */
export interface Scope {
  /** The host's name, without its port, as `mppx validate` wants it. */
  readonly realm: string
  /** A digest of the resource, which travels in `opaque.r`. */
  readonly digest: string
}

/** The scope of a challenge: its resource without the fragment, which no server sees; or, where only a host was named, that host. */
export function scopeOf(place: {
  readonly resource?: string | undefined
  readonly hostname?: string | undefined
}): Scope {
  if (place.resource === undefined) return hostScope(new URL(`https://${place.hostname}/`).hostname)
  const url = new URL(place.resource)
  url.hash = ''
  return { realm: url.hostname, digest: digestOf(url.href) }
}

/**
 * Whether a challenge of ours was made for this resource. One for a resource is good for that resource alone, query and
 * all, or the cheapest route would open its neighbours; one for a host is good for whatever is on it.
 */
export function isInScope(challenge: MppChallenge, resource: string | undefined): boolean {
  const digest = challenge.opaque === undefined ? undefined : decodeMppJson(challenge.opaque)?.r
  if (digest === hostScope(challenge.realm).digest)
    return resource === undefined || scopeOf({ resource }).realm === challenge.realm
  if (resource === undefined) return false
  const scope = scopeOf({ resource })
  return challenge.realm === scope.realm && digest === scope.digest
}

/** Whether the challenge promised its price to requests of this method. */
export function isPricedFor(challenge: MppChallenge, method: string | undefined): boolean {
  const promised = challenge.opaque === undefined ? undefined : decodeMppJson(challenge.opaque)?.m
  return promised !== undefined && promised === method
}

function hostScope(realm: string): Scope {
  return { realm, digest: digestOf(`host:${realm}`) }
}

function digestOf(text: string): string {
  return hash('sha256', text, 'buffer').subarray(0, 16).toString('base64url')
}
