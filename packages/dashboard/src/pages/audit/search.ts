import { isRange, type RangeSearch } from '../../ui/range.ts'
import { isSearchText, type OpenSearch, readOpen } from '../../ui/search.ts'

/** The filters of the audit log in the URL; the API applies each of them. */
export interface AuditSearch extends OpenSearch, RangeSearch {
  /** A whole action, such as `organisations.apiKeys.create`. */
  readonly action?: string
  /** The id of the changed object. */
  readonly target?: string
  /** The id of the API key or the account that made the change. */
  readonly actor?: string
}

/** Reads the filters of the audit log from an address; values that are no filter are left out. */
export function readAuditSearch(search: Readonly<Record<string, unknown>>): AuditSearch {
  const { action, target, actor, range } = search
  return {
    ...readOpen(search),
    ...(isRange(range) && { range }),
    ...(isSearchText(action) && { action }),
    ...(isSearchText(target) && { target }),
    ...(isActorId(actor) && { actor }),
  }
}

function isActorId(value: unknown): value is string {
  return typeof value === 'string' && /^(?:acc|key)_[0-9a-z]{26}$/.test(value)
}
