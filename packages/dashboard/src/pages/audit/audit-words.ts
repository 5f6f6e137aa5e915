import type { AuditRecord } from '@purser/sdk'
import type { AuditSearch } from './search.ts'

export const auditKey = ['audit-log'] as const

/** The first word of an act: what it is about. */
export function areaOf({ action }: Pick<AuditRecord, 'action'>): string {
  return action.split('.')[0] ?? action
}

/** The id of the actor, if the log has one. */
export function actorIdOf({ actor }: Pick<AuditRecord, 'actor'>): string | undefined {
  const id = actor.accountId ?? actor.apiKeyId ?? actor.guestId
  return typeof id === 'string' ? id : undefined
}

/** Whether a record is one that the filters of the address name. */
export function matches(record: AuditRecord, { area, actor, q }: AuditSearch): boolean {
  if (area !== undefined && areaOf(record) !== area) return false
  if (actor !== undefined && record.actor.kind !== actor) return false
  if (q === undefined) return true
  const texts = [record.action, record.target ?? '', record.requestId, record.id, actorIdOf(record) ?? '']
  return texts.some((text) => text.toLowerCase().includes(q.toLowerCase()))
}
