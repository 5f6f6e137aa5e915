import { isSearchText, type OpenSearch, readOpen } from '../../ui/search.ts'

export interface RoutesSearch extends OpenSearch {
  readonly protocol?: 'x402' | 'mpp'
  readonly q?: string
}

/** Reads the filters of the list of routes from an address. */
export function readRoutesSearch(search: Readonly<Record<string, unknown>>): RoutesSearch {
  const { protocol, q } = search
  return {
    ...readOpen(search),
    ...((protocol === 'x402' || protocol === 'mpp') && { protocol }),
    ...(isSearchText(q) && { q }),
  }
}
