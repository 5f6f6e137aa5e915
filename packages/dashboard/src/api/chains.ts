import type { Chain, Purser } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'
import { createContext } from 'react'

/** The chains of this environment. */
export function chainsQuery(purser: Purser) {
  return queryOptions({
    queryKey: ['chains'],
    queryFn: async ({ signal }) => (await purser.chains.list({ limit: 100 }, { signal }).page()).items,
  })
}

/** The chains of this environment, for links to their explorers; empty until they are loaded. Hundreds of rows read them, and one query loads them. */
export const ChainsContext = createContext<readonly Chain[]>([])
