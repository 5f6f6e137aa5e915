import type { AuditRecord } from '@purser/sdk'
import { rangeStart } from '../../ui/range.ts'
import type { AuditSearch } from './search.ts'

export const auditKey = ['audit-log'] as const

/** The query of the API for the filters of an address. Actions and ids match whole. */
export function auditQuery({ action, target, actor, range }: Omit<AuditSearch, 'open'>, now: Date) {
  return {
    ...(action !== undefined && { action }),
    ...(target !== undefined && { target }),
    ...(actor !== undefined && { actor }),
    ...(range !== undefined && { from: rangeStart(range, now).toISOString() }),
  }
}

/** The id of the actor, if the log has one. */
export function actorIdOf({ actor }: Pick<AuditRecord, 'actor'>): string | undefined {
  const id = actor.accountId ?? actor.apiKeyId ?? actor.guestId
  return typeof id === 'string' ? id : undefined
}
