import { hash } from 'node:crypto'
import { decodeMppJson, type MppChallenge } from '@purser/protocol'

/** The scope of a challenge: one resource, or everything on one host. */
export interface Scope {
  /** The host's name without its port, as `mppx validate` requires. */
  readonly realm: string
  /** A digest of the resource, which travels in `opaque.r`. */
  readonly digest: string
}

/**
 * Returns the scope of a challenge: its resource without the fragment, which no server receives; or the host, where only a host
 * was named.
 */
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
 * Whether a challenge of this service was made for this resource. A challenge for a resource is valid only for that resource
 * including its query; otherwise the cheapest route would open its neighbors. A challenge for a host is valid for everything on
 * it.
 */
export function isInScope(challenge: MppChallenge, resource: string | undefined): boolean {
  const digest = challenge.opaque === undefined ? undefined : decodeMppJson(challenge.opaque)?.r
  if (digest === hostScope(challenge.realm).digest)
    return resource === undefined || scopeOf({ resource }).realm === challenge.realm
  if (resource === undefined) return false
  const scope = scopeOf({ resource })
  return challenge.realm === scope.realm && digest === scope.digest
}

/** Whether the challenge offered its price to requests of this method. */
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
