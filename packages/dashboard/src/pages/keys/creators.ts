import type { AuditRecord } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { keysKey } from './key-words.ts'

/** Records of made keys that are read: an organisation has at most 50 valid keys in an environment. */
const recordsMax = 500
const none: ReadonlyMap<string, AuditRecord['actor']> = new Map()

/**
 * The creators of the newest keys, by key id, from the audit log: a key itself names only the API key that created it.
 */
export function useCreators(): ReadonlyMap<string, AuditRecord['actor']> {
  const purser = usePurser()
  const { data } = useQuery({
    queryKey: [...keysKey, 'creators'],
    queryFn: ({ signal }) =>
      purser.organisations
        .auditLog({ action: 'organisations.apiKeys.create', limit: recordsMax }, { signal })
        .toArray({ limit: recordsMax }),
    select: actorsOf,
  })
  return data ?? none
}

function actorsOf(records: readonly AuditRecord[]): ReadonlyMap<string, AuditRecord['actor']> {
  return new Map(records.flatMap(({ target, actor }) => (target === null ? [] : [[target, actor] as const])))
}
