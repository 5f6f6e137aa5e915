import { isSearchText, type OpenSearch, readOpen } from '../../ui/search.ts'

/** Who acted, as the log names the kinds. */
export const actorKinds = {
  person: 'People',
  'api-key': 'API keys',
  system: 'The service',
  operator: 'The operator',
} as const

export interface AuditSearch extends OpenSearch {
  /** The first word of an act, such as `wallets`. */
  readonly area?: string
  readonly actor?: keyof typeof actorKinds
  /** A piece of the act, the target, the request id or the actor's id. */
  readonly q?: string
}

/** Reads the filters of the audit log from an address. */
export function readAuditSearch(search: Readonly<Record<string, unknown>>): AuditSearch {
  const { area, actor, q } = search
  const kind = (Object.keys(actorKinds) as readonly (keyof typeof actorKinds)[]).find((one) => one === actor)
  return {
    ...readOpen(search),
    ...(isSearchText(area) && { area }),
    ...(kind !== undefined && { actor: kind }),
    ...(isSearchText(q) && { q }),
  }
}
